// What the services are made over: everything of the server below floor 5, by reference.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/state_store.h"
#include "server/control/dispatcher.h"
#include "server/control/trace_table.h"
#include "server/rpc/auth.h"
#include "server/telemetry/server_metrics.h"

namespace chainfleet {

// All outlive the services.
struct ServiceParts {
  const Clock* clock = nullptr;
  Executor* executor = nullptr;
  StateStore* state = nullptr;
  BlobStore* blobs = nullptr;
  Dispatcher* dispatcher = nullptr;
  TraceTable* traces = nullptr;
  const Authenticator* auth = nullptr;
  ServerMetrics* metrics = nullptr;
  std::string data_directory;
  absl::Time started_at;
};

}  // namespace chainfleet
