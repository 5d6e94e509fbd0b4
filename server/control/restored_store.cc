#include "server/control/restored_store.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/store/draw_codec/object_names.h"
#include "server/control/incarnation_listing.h"

namespace chainfleet {
namespace {

// Changes per transaction, few compared to the store's timeouts.
constexpr size_t kChangesAtOnce = 256;

class StockTaking {
 public:
  StockTaking(StateStore* store, StateWriter* writer, const BlobStore& blobs)
      : store_(store), writer_(writer), blobs_(blobs) {}

  absl::StatusOr<RestoredStore> Run() {
    CHAINFLEET_ASSIGN_OR_RETURN(const StoredState state, store_->Load());
    CHAINFLEET_RETURN_IF_ERROR(TakeChains(state));
    const std::vector<Content> contents = ContentsOf(state);
    for (const Content& content : contents) absent_.insert(content.object);
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> incarnations, store_->FormerIncarnations());
    for (const std::string& incarnation : incarnations) CHAINFLEET_RETURN_IF_ERROR(LookThrough(incarnation));
    CHAINFLEET_RETURN_IF_ERROR(Flush());
    for (const Content& content : contents) TellContent(content);
    result_.swept_chains = static_cast<int64_t>(queued_.size());
    return result_;
  }

 private:
  // An object of a data set or a model.
  struct Content {
    const char* kind;
    std::string name, object;
  };

  static std::vector<Content> ContentsOf(const StoredState& state) {
    std::vector<Content> contents;
    for (const Dataset& dataset : state.datasets) {
      for (const DatasetShard& shard : dataset.shards) contents.push_back({"dataset", dataset.name, shard.object.name});
    }
    for (const StoredModel& model : state.models) contents.push_back({"model", model.name, model.object.name});
    return contents;
  }

  absl::Status Apply(StateChange change) {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ApplyResult> results, writer_->Commit({std::move(change)}));
    return results.front().status;
  }

  // Queues a change; changes are committed many in one transaction.
  absl::Status Later(StateChange change) {
    changes_.push_back(std::move(change));
    return changes_.size() < kChangesAtOnce ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    const std::vector<StateChange> changes = std::exchange(changes_, {});
    if (changes.empty()) return absl::OkStatus();
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ApplyResult> results, writer_->Commit(changes));
    for (const ApplyResult& result : results) CHAINFLEET_RETURN_IF_ERROR(result.status);
    return absl::OkStatus();
  }

  absl::Status TakeChains(const StoredState& state) {
    for (const StoredJob& job : state.jobs) {
      for (const ChainRow& chain : job.chains) {
        chains_.emplace(chain.id, chain);
        if (chain.state != ChainState::kLeased) continue;
        CHAINFLEET_RETURN_IF_ERROR(
            Later(change::EndLease{chain.id, chain.lease_epoch, true, true, "the store was restored from a backup"}));
      }
    }
    return Flush();
  }

  absl::Status LookThrough(const std::string& incarnation) {
    std::set<ChainId> seen;
    const IncarnationVisitor visitor{
        .chain =
            [&](const ChainId& chain, const std::set<std::string>& present) {
              seen.insert(chain);
              return CheckChain(incarnation, chain, present);
            },
        .content = [&](const std::vector<std::string>& present) { return CheckContents(present); }};
    CHAINFLEET_RETURN_IF_ERROR(VisitIncarnation(blobs_, incarnation, visitor));
    for (const auto& [chain, row] : chains_) {
      if (!seen.contains(chain)) CHAINFLEET_RETURN_IF_ERROR(CheckChain(incarnation, chain, {}));
    }
    return absl::OkStatus();
  }

  // `present` are all objects of the chain under this incarnation.
  absl::Status CheckChain(const std::string& incarnation, const ChainId& chain, const std::set<std::string>& present) {
    const auto found = chains_.find(chain);
    if (found == chains_.end()) return QueueSweep(chain);
    CHAINFLEET_ASSIGN_OR_RETURN(const ChainReferences references, store_->ReferencesOfChain(chain));
    const std::string prefix = ChainObjectPrefix(incarnation, chain);
    std::set<std::string> missing;
    size_t wanted = 0;
    for (const std::string& object : references.objects) {
      if (!object.starts_with(prefix)) continue;
      ++wanted;
      if (!present.contains(object)) missing.insert(object);
    }
    if (present.size() > wanted - missing.size()) CHAINFLEET_RETURN_IF_ERROR(QueueSweep(chain));
    result_.objects += static_cast<int64_t>(wanted);
    result_.missing += static_cast<int64_t>(missing.size());
    return missing.empty() ? absl::OkStatus() : DoWithout(found->second, std::move(missing), references.is_final);
  }

  absl::Status QueueSweep(const ChainId& chain) {
    return queued_.insert(chain).second ? Later(change::QueueSweep{chain}) : absl::OkStatus();
  }

  absl::Status DoWithout(const ChainRow& chain, std::set<std::string> missing, bool is_final) {
    for (const std::string& object : missing) {
      Log(LogLevel::kError, "object of a chain missing",
          {{"job", chain.id.job},
           {"chain", chain.id.index},
           {"lease_epoch", chain.lease_epoch},
           {"worker", chain.worker},
           {"object", object}});
    }
    CHAINFLEET_RETURN_IF_ERROR(MarkSegments(chain.id, &missing));
    if (missing.empty() || is_final) return absl::OkStatus();
    // The remaining object is the resume point. FAILED is final, so do not decide it by a listing alone.
    const std::string& point = *missing.begin();
    const absl::Status there = blobs_.SizeBytes(point).status();
    if (!absl::IsNotFound(there)) return there;
    // In an aborted job the end of the lease has already ended the chain.
    const absl::Status failed = Apply(change::RetireChain{
        chain.id, absl::StrCat("its resume point ", point, " is missing since the store was restored"), true});
    if (absl::IsFailedPrecondition(failed)) return absl::OkStatus();
    ++result_.failed_chains;
    return failed;
  }

  // Marks missing segments and removes them from `missing`.
  absl::Status MarkSegments(const ChainId& chain, std::set<std::string>* missing) {
    const auto mark = [&](const SegmentRecord& record) -> absl::StatusOr<bool> {
      const std::string& object = record.segment.object.name;
      if (missing->erase(object) == 0 || record.deleted) return true;
      CHAINFLEET_RETURN_IF_ERROR(Apply(change::MarkCorrupt{chain.job, object, true}));
      ++result_.corrupt_segments;
      return true;
    };
    return VisitSegments(store_, {.job = chain.job, .chain = chain.index}, mark);
  }

  absl::Status CheckContents(const std::vector<std::string>& present) {
    std::vector<std::string> unknown;
    for (const std::string& object : present) {
      if (absent_.erase(object) == 0) unknown.push_back(object);
    }
    if (unknown.empty()) return absl::OkStatus();
    result_.garbage += static_cast<int64_t>(unknown.size());
    return Apply(change::NameGarbage{std::move(unknown)});
  }

  void TellContent(const Content& content) {
    ++result_.objects;
    if (!absent_.contains(content.object)) return;
    ++result_.missing;
    Log(LogLevel::kError, "object missing: upload the same file again under the same name",
        {{content.kind, content.name}, {"object", content.object}});
  }

  StateStore* const store_;
  StateWriter* const writer_;
  const BlobStore& blobs_;
  std::map<ChainId, ChainRow> chains_;
  std::set<std::string> absent_;  // data sets and models not seen so far
  std::set<ChainId> queued_;
  std::vector<StateChange> changes_;  // not committed yet
  RestoredStore result_;
};

}  // namespace

absl::StatusOr<RestoredStore> TakeStock(StateStore* store, StateWriter* writer, const BlobStore& blobs) {
  return StockTaking(store, writer, blobs).Run();
}

}  // namespace chainfleet
