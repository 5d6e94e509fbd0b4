#include "server/control/restored_store.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/store/draw_codec/object_names.h"

namespace chainfleet {
namespace {

class StockTaking {
 public:
  StockTaking(const Clock& clock, StateStore* store, const BlobStore& blobs)
      : clock_(clock), store_(store), blobs_(blobs) {}

  absl::StatusOr<RestoredStore> Run() {
    CHAINFLEET_ASSIGN_OR_RETURN(StoredState state, store_->Load());
    for (const StoredJob& job : state.jobs) {
      for (const ChainRow& chain : job.chains) CHAINFLEET_RETURN_IF_ERROR(CheckChain(chain));
    }
    for (const Dataset& dataset : state.datasets) {
      for (const DatasetShard& shard : dataset.shards) {
        CHAINFLEET_RETURN_IF_ERROR(CheckContent("dataset", dataset.name, shard.object));
      }
    }
    for (const StoredModel& model : state.models) {
      CHAINFLEET_RETURN_IF_ERROR(CheckContent("model", model.name, model.object));
    }
    return result_;
  }

 private:
  absl::Status Apply(StateChange change) {
    const std::vector<StateChange> changes{std::move(change)};
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ApplyResult> results, store_->Apply(changes, clock_.Wall()));
    return results.front().status;
  }

  absl::Status CheckChain(const ChainRow& chain) {
    if (chain.state == ChainState::kLeased) {
      CHAINFLEET_RETURN_IF_ERROR(
          Apply(change::EndLease{chain.id, chain.lease_epoch, true, true, "the store was restored from a backup"}));
    }
    CHAINFLEET_ASSIGN_OR_RETURN(const ChainReferences references, store_->ReferencesOfChain(chain.id));
    CHAINFLEET_ASSIGN_OR_RETURN(std::set<std::string> missing, MissingOf(references.objects));
    result_.objects += static_cast<int64_t>(references.objects.size());
    result_.missing += static_cast<int64_t>(missing.size());
    if (missing.empty()) return absl::OkStatus();
    for (const std::string& object : missing) {
      Log(LogLevel::kError, "an object of a chain is missing",
          {{"job", chain.id.job},
           {"chain", chain.id.index},
           {"lease_epoch", chain.lease_epoch},
           {"worker", chain.worker},
           {"object", object}});
    }
    CHAINFLEET_RETURN_IF_ERROR(MarkSegments(chain.id, &missing));
    if (missing.empty() || references.is_final) return absl::OkStatus();
    // What is left is the resume point; where its job was aborted the end of the lease has ended the chain.
    const absl::Status failed = Apply(change::RetireChain{
        chain.id, absl::StrCat("its resume point ", *missing.begin(), " is missing since the store was restored"),
        true});
    if (absl::IsFailedPrecondition(failed)) return absl::OkStatus();
    ++result_.failed_chains;
    return failed;
  }

  // One listing for each incarnation that the chain's objects are of, not one question an object.
  absl::StatusOr<std::set<std::string>> MissingOf(const std::set<std::string>& objects) const {
    std::set<std::string> missing = objects, prefixes;
    for (const std::string& object : objects) {
      if (const auto name = ParseChainObjectName(object)) {
        prefixes.insert(ChainObjectPrefix(name->store_incarnation, name->chain));
      }
    }
    for (const std::string& prefix : prefixes) {
      CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> present, blobs_.List(prefix));
      for (const std::string& object : present) missing.erase(object);
    }
    return missing;
  }

  // Takes those of segments out of `missing`.
  absl::Status MarkSegments(const ChainId& chain, std::set<std::string>* missing) {
    StateStore::SegmentQuery query{.job = chain.job, .chain = chain.index};
    for (;;) {
      CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<SegmentRecord> records, store_->ListSegments(query));
      for (const SegmentRecord& record : records) {
        const std::string& object = record.segment.object.name;
        if (missing->erase(object) == 0 || record.deleted) continue;
        CHAINFLEET_RETURN_IF_ERROR(Apply(change::MarkCorrupt{chain.job, object, true}));
        ++result_.corrupt_segments;
      }
      if (static_cast<int32_t>(records.size()) < query.limit) return absl::OkStatus();
      query.after_chain = records.back().chain.index;
      query.after_first_index = records.back().segment.first_index;
    }
  }

  absl::Status CheckContent(const char* kind, const std::string& name, const BlobRef& object) {
    ++result_.objects;
    const absl::StatusOr<int64_t> size = blobs_.SizeBytes(object.name);
    if (size.ok()) return absl::OkStatus();
    if (!absl::IsNotFound(size.status())) return size.status();
    ++result_.missing;
    Log(LogLevel::kError, "an object is missing: put the same file again under the same name",
        {{kind, name}, {"object", object.name}});
    return absl::OkStatus();
  }

  const Clock& clock_;
  StateStore* const store_;
  const BlobStore& blobs_;
  RestoredStore result_;
};

}  // namespace

absl::StatusOr<RestoredStore> TakeStock(const Clock& clock, StateStore* store, const BlobStore& blobs) {
  return StockTaking(clock, store, blobs).Run();
}

}  // namespace chainfleet
