// An interceptor that gives every RPC an id, and counts and logs how it ended.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <vector>

#include "core/base/clock.h"
#include "core/base/rng_key.h"
#include "core/base/trusted_proxies.h"
#include "core/store/audit_log/audit_log.h"
#include "server/rpc/auth.h"
#include "server/telemetry/server_metrics.h"

namespace chainfleet {

struct CallRecordParts {
  const Clock* clock = nullptr;
  RngKey ids;                        // for the ids of calls that come without
  ServerMetrics* metrics = nullptr;  // may be null
  const Authenticator* auth = nullptr;
  AuditLog* audit = nullptr;  // may be null
  int64_t changes_at_once = limits::kChangesAtOnce;
  TrustedProxies proxies = {};  // tell the addresses of their callers
};

// Returns the interceptor for a ServerBuilder. A call's id is the one that the client gave (request_id.h), or is made
// from parts.ids. Handlers read it with RequestIdOf; clients find it in the initial and trailing metadata as
// x-request-id and in an error's RequestInfo.
//
// Each line has {request, method, code, duration_ms} and the job, chain, lease_epoch, worker and evaluation that the
// messages name. Levels: warning for calls that fail because of the server; info for other failures and for calls that
// change something for a user; debug for the rest.
//
// The calls that change something for a user also get a line in parts.audit, with the caller's token id, tenant and
// peer. So do the calls that lack a right, those that a bound of their tenant stops (TENANT_LIMIT), those whose token
// was revoked while they ran, and those of a worker about a chain, an object or an id that is not its own
// (LEASE_FENCED, NOT_HELD, WORKER_PRESENT). AuditRate bounds the lines of failed calls, of joins and, on a server
// without tokens, of all calls; other changes are bounded before they run (call_quota.h), so each has its line. Calls
// without a known token are in RefusedPeers. The parts outlive the server.
std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> MakeCallRecord(
    const CallRecordParts& parts);

}  // namespace chainfleet
