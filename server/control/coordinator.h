// Composes the coordinator's owners over one store, and fixes the order in which they start and stop.
#pragma once

#include <memory>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/store/state_store/state_store.h"
#include "server/control/access_tokens.h"
#include "server/control/catalog.h"
#include "server/control/dispatcher.h"
#include "server/control/event_log.h"
#include "server/control/state_writer.h"
#include "server/control/versions.h"

namespace chainfleet {

class Coordinator {
 public:
  // `state` is the result of store->Load(). The pointers outlive the executor's last task.
  Coordinator(const Clock* clock, Executor* executor, StateStore* store, StoredState state,
              const DispatcherOptions& options);
  // Waits for the change that is being written; later changes are refused.
  ~Coordinator() { writer_.Close(); }

  StateWriter& writer() { return writer_; }
  AccessTokens& tokens() { return tokens_; }
  Catalog& catalog() { return catalog_; }
  Versions& versions() { return versions_; }
  Dispatcher& dispatcher() { return dispatcher_; }
  // The events of jobs. Other parts of the server may add theirs.
  const std::shared_ptr<EventLog>& events() { return events_; }

 private:
  StateWriter writer_;
  AccessTokens tokens_;
  Catalog catalog_;
  Versions versions_;
  const std::shared_ptr<EventLog> events_;
  Dispatcher dispatcher_;
};

}  // namespace chainfleet
