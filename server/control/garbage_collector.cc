#include "server/control/garbage_collector.h"

#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/store/draw_codec/object_names.h"

namespace chainfleet {
namespace {

constexpr int32_t kPage = 256;

}  // namespace

struct GarbageCollector::State {
  const Clock* const clock;
  Executor* const executor;
  StateStore* const store;
  BlobStore* const blobs;

  static void Schedule(const std::weak_ptr<State>& weak, absl::Duration interval) {
    const auto state = weak.lock();
    if (state == nullptr) return;
    state->executor->ScheduleAfter(interval, [weak, interval] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      const absl::StatusOr<Pass> pass = self->Collect();
      if (!pass.ok()) Log(LogLevel::kWarning, "garbage collection", {{"error", pass.status().ToString()}});
      Schedule(weak, interval);
    });
  }

  absl::StatusOr<Pass> Collect() {
    Pass pass;
    CHAINFLEET_RETURN_IF_ERROR(CollectNamed(&pass));
    for (ChainId after{"", -1};;) {
      CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ChainId> chains, store->ListChainIds(after, kPage));
      if (chains.empty()) return pass;
      for (const ChainId& chain : chains) CHAINFLEET_RETURN_IF_ERROR(CollectChain(chain, &pass));
      after = chains.back();
    }
  }

  // What the store itself has declared garbage.
  absl::Status CollectNamed(Pass* pass) {
    for (;;) {
      CHAINFLEET_ASSIGN_OR_RETURN(std::vector<std::string> objects, store->ListGarbage(kPage));
      if (objects.empty()) return absl::OkStatus();
      for (const std::string& object : objects) CHAINFLEET_RETURN_IF_ERROR(blobs->Delete(object));
      pass->deleted += static_cast<int64_t>(objects.size());
      const std::vector<StateChange> changes{change::ForgetGarbage{std::move(objects)}};
      CHAINFLEET_ASSIGN_OR_RETURN(const auto results, store->Apply(changes, clock->Wall()));
      CHAINFLEET_RETURN_IF_ERROR(results.front().status);
    }
  }

  absl::Status CollectChain(const ChainId& chain, Pass* pass) {
    ++pass->chains;
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                                blobs->List(ChainObjectPrefix(store->incarnation(), chain)));
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
    : state_(std::make_shared<State>(State{clock, executor, store, blobs})) {}

void GarbageCollector::Start(absl::Duration interval) { State::Schedule(state_, interval); }

absl::StatusOr<GarbageCollector::Pass> GarbageCollector::Collect() { return state_->Collect(); }

}  // namespace chainfleet
