#include "server/control/garbage_collector.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/store/draw_codec/object_names.h"
#include "server/control/upkeep.h"

namespace chainfleet {
namespace {

constexpr int32_t kPage = 64;

}  // namespace

struct GarbageCollector::State {
  const Clock* const clock;
  Executor* const executor;
  StateStore* const store;
  BlobStore* const blobs;
  Mutex collecting;  // two passes at once would do everything twice

  absl::StatusOr<Pass> Collect() {
    MutexLock lock(&collecting);
    Pass pass;
    absl::Status status = DeleteGarbage(&pass);
    status.Update(Sweep(&pass));
    if (!status.ok()) return status;
    return pass;
  }

  absl::Status Apply(StateChange change) {
    const std::vector<StateChange> changes{std::move(change)};
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ApplyResult> results, store->Apply(changes, clock->Wall()));
    return results.front().status;
  }

  // What the store itself has declared garbage.
  absl::Status DeleteGarbage(Pass* pass) {
    absl::Status status;
    for (std::string after;;) {
      CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> objects, store->ListGarbage(after, kPage));
      if (objects.empty()) return status;
      after = objects.back();
      std::vector<std::string> deleted;
      for (const std::string& object : objects) {
        const absl::Status gone = blobs->Delete(object);
        if (gone.ok()) deleted.push_back(object);
        status.Update(gone);
      }
      pass->deleted += static_cast<int64_t>(deleted.size());
      if (!deleted.empty()) CHAINFLEET_RETURN_IF_ERROR(Apply(change::ForgetGarbage{std::move(deleted)}));
    }
  }

  absl::Status Sweep(Pass* pass) {
    absl::Status status;
    for (int64_t after = 0;;) {
      CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ChainSweep> sweeps, store->ListSweeps(after, kPage));
      if (sweeps.empty()) return status;
      after = sweeps.back().ticket;
      for (const ChainSweep& sweep : sweeps) {
        const absl::Status swept = SweepChain(sweep.chain, pass);
        status.Update(swept);
        if (swept.ok()) CHAINFLEET_RETURN_IF_ERROR(Apply(change::EndSweep{sweep.ticket}));
      }
    }
  }

  absl::Status SweepChain(const ChainId& chain, Pass* pass) {
    ++pass->chains;
    std::vector<std::string> names;
    CHAINFLEET_ASSIGN_OR_RETURN(std::vector<std::string> incarnations, store->FormerIncarnations());
    incarnations.push_back(store->incarnation());
    for (const std::string& incarnation : incarnations) {
      CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> listed,
                                  blobs->List(ChainObjectPrefix(incarnation, chain)));
      names.insert(names.end(), listed.begin(), listed.end());
    }
    if (names.empty()) return absl::OkStatus();
    CHAINFLEET_ASSIGN_OR_RETURN(const ChainReferences references, store->ReferencesOfChain(chain));
    for (const std::string& name : names) {
      const std::optional<ChainObjectName> parsed = ParseChainObjectName(name);
      if (!parsed || references.objects.contains(name)) continue;
      if (parsed->lease_epoch >= references.lease_epoch && !references.is_final) continue;
      CHAINFLEET_RETURN_IF_ERROR(blobs->Delete(name));
      ++pass->deleted;
    }
    return absl::OkStatus();
  }
};

GarbageCollector::GarbageCollector(const Clock* clock, Executor* executor, StateStore* store, BlobStore* blobs)
    : state_(std::make_shared<State>(clock, executor, store, blobs)) {}

absl::Status GarbageCollector::Recover() { return state_->Apply(change::EndUpload{std::nullopt}); }

void GarbageCollector::Start(absl::Duration interval) {
  RunEvery(state_->executor, interval, interval, "garbage collection", std::weak_ptr<State>(state_),
           [](State* state) { return state->Collect().status(); });
}

absl::StatusOr<GarbageCollector::Pass> GarbageCollector::Collect() { return state_->Collect(); }

}  // namespace chainfleet
