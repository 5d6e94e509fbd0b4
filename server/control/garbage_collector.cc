#include "server/control/garbage_collector.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/shared_work.h"
#include "core/store/draw_codec/object_names.h"
#include "server/control/upkeep.h"

namespace chainfleet {
namespace {

constexpr int32_t kPage = 256;
// Threads besides the pass's own. One thread removes only a few objects a second from a remote store.
constexpr int kHelpers = 15;
constexpr absl::Duration kFirstPass = absl::Seconds(10);  // a server that restarts often must collect, too

}  // namespace

struct GarbageCollector::State {
  Executor* const executor;
  StateStore* const store;
  StateWriter* const writer;
  BlobStore* const blobs;
  Mutex mutex = {};  // held while a page is read and deleted, so that a Hold never begins between the two
  int holds CHAINFLEET_GUARDED_BY(mutex) = 0;

  absl::StatusOr<Pass> Collect() {
    Pass pass;
    absl::Status status = DeleteGarbage(&pass);
    status.Update(Sweep(&pass));
    if (!status.ok()) return status;
    return pass;
  }

  // Deletes the objects that the store has declared garbage.
  absl::Status DeleteGarbage(Pass* pass) {
    absl::Status status;
    for (std::string after;;) {
      const MutexLock lock(&mutex);
      if (holds > 0) return status;
      CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> objects, store->ListGarbage(after, kPage));
      if (objects.empty()) return status;
      after = objects.back();
      std::vector<absl::Status> gone(objects.size());
      ShareWork(executor, kHelpers, std::ssize(objects), [&](int64_t i) { gone[i] = blobs->Delete(objects[i]); });
      std::vector<std::string> deleted;
      for (size_t i = 0; i < objects.size(); ++i) {
        if (gone[i].ok()) deleted.push_back(objects[i]);
        status.Update(gone[i]);
      }
      pass->deleted += static_cast<int64_t>(deleted.size());
      if (!deleted.empty())
        CHAINFLEET_RETURN_IF_ERROR(writer->Commit({change::ForgetGarbage{std::move(deleted)}}).status());
    }
  }

  absl::Status Sweep(Pass* pass) {
    absl::Status status;
    for (int64_t after = 0;;) {
      const MutexLock lock(&mutex);
      if (holds > 0) return status;
      CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ChainSweep> sweeps, store->ListSweeps(after, kPage));
      if (sweeps.empty()) return status;
      after = sweeps.back().ticket;
      CHAINFLEET_ASSIGN_OR_RETURN(std::vector<std::string> incarnations, store->FormerIncarnations());
      incarnations.push_back(store->incarnation());
      std::vector<absl::StatusOr<int64_t>> deleted(sweeps.size(), 0);
      ShareWork(executor, kHelpers, std::ssize(sweeps),
                [&](int64_t i) { deleted[i] = SweepChain(sweeps[i].chain, incarnations); });
      pass->chains += std::ssize(sweeps);
      std::vector<StateChange> ends;
      for (size_t i = 0; i < sweeps.size(); ++i) {
        status.Update(deleted[i].status());
        if (!deleted[i].ok()) continue;
        pass->deleted += *deleted[i];
        ends.push_back(change::EndSweep{sweeps[i].ticket});
      }
      if (!ends.empty()) CHAINFLEET_RETURN_IF_ERROR(writer->Commit(ends).status());
    }
  }

  // Returns the number of the chain's objects that it deleted.
  absl::StatusOr<int64_t> SweepChain(const ChainId& chain, const std::vector<std::string>& incarnations) {
    std::vector<std::string> names;
    for (const std::string& incarnation : incarnations) {
      CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> listed,
                                  blobs->List(ChainObjectPrefix(incarnation, chain)));
      names.insert(names.end(), listed.begin(), listed.end());
    }
    if (names.empty()) return 0;
    int64_t deleted = 0;
    CHAINFLEET_ASSIGN_OR_RETURN(const ChainReferences references, store->ReferencesOfChain(chain));
    for (const std::string& name : names) {
      const std::optional<ChainObjectName> parsed = ParseChainObjectName(name);
      if (!parsed || references.objects.contains(name)) continue;
      if (parsed->lease_epoch >= references.lease_epoch && !references.is_final) continue;
      CHAINFLEET_RETURN_IF_ERROR(blobs->Delete(name));
      ++deleted;
    }
    return deleted;
  }
};

GarbageCollector::GarbageCollector(Executor* executor, StateStore* store, StateWriter* writer, BlobStore* blobs)
    : state_(new State{executor, store, writer, blobs}) {}

absl::Status GarbageCollector::Recover() { return state_->writer->Commit({change::EndUpload{std::nullopt}}).status(); }

void GarbageCollector::Start(absl::Duration interval) {
  RunEvery(state_->executor, std::min(interval, kFirstPass), interval, "garbage collection",
           std::weak_ptr<State>(state_), [](State* state) { return state->Collect().status(); });
}

std::shared_ptr<void> GarbageCollector::Hold() {
  const MutexLock lock(&state_->mutex);
  ++state_->holds;
  return std::shared_ptr<void>(nullptr, [state = state_](void*) {
    const MutexLock ended(&state->mutex);
    --state->holds;
  });
}

absl::StatusOr<GarbageCollector::Pass> GarbageCollector::Collect() { return state_->Collect(); }

}  // namespace chainfleet
