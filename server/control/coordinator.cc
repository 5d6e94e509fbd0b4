#include "server/control/coordinator.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"

namespace chainfleet {
namespace {

std::function<void(const absl::Status&)> Lost(std::function<void(const absl::Status&)> then) {
  return [then = std::move(then)](const absl::Status& status) {
    Log(LogLevel::kError, "state store lost: this process must end", {{"error", status.ToString()}});
    CHAINFLEET_CHECK(then != nullptr) << status.ToString();
    then(status);
  };
}

}  // namespace

Coordinator::Coordinator(const Clock* clock, Executor* executor, StateStore* store, StoredState state,
                         const DispatcherOptions& options)
    : writer_(clock, executor, store, Lost(options.on_store_lost)),
      tokens_(executor, &writer_, state),
      catalog_(&writer_, *store, state, Fold(options.id_key, 0)),
      versions_(clock, executor, &writer_, store, state),
      events_(std::make_shared<EventLog>(clock, store->generation())),
      dispatcher_({clock, executor, store, &writer_, &catalog_, &versions_, events_}, std::move(state), options) {}

}  // namespace chainfleet
