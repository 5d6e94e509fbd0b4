// Who calls and what that caller may do: bearer tokens, the tenants and rights that go with them, and the one table
// that says which right each method needs.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "server/rpc/request_id.h"

namespace chainfleet {

// What a token allows. Bits of Principal::rights.
enum Right : unsigned {
  kCall = 1,       // jobs, data sets and predictions of the caller's tenant
  kOperate = 2,    // drain workers, delete data sets and models of other tenants
  kPutModels = 4,  // store TorchScript files, which are programs
  kWork = 8,       // WorkerService
};
inline constexpr unsigned kOperatorRights = kCall | kOperate | kPutModels;

struct Principal {
  std::string tenant;
  unsigned rights = kCall;
  bool may(Right right) const { return (rights & right) != 0; }
};

// What a server allows at all, whatever the caller's rights.
struct AccessOptions {
  bool allow_modules = false;                                  // TorchScript files may be put and sampled
  int64_t tenant_calls = std::numeric_limits<int64_t>::max();  // of one tenant in flight at a time
};

// Principals by token.
using TokenTable = std::map<std::string, Principal>;

// `callers` has one line for each token: TOKEN [TENANT] [operator] [models], or TOKEN worker. Without a tenant the
// token belongs to kDefaultTenant. The only token that is no worker's is an operator's, whatever its line says.
// `workers` has words, each a worker's token. nullopt: the environment says nothing; if both are, the table is empty
// and every call is allowed. INVALID_ARGUMENT naming the line, never the token: a text or a table without a token for
// callers, a token that is given twice or has fewer than 128 bits (22 characters, or 32 if all are hexadecimal digits),
// an unknown word.
absl::StatusOr<TokenTable> ParseTokens(const std::optional<std::string>& callers,
                                       const std::optional<std::string>& workers = std::nullopt);

// Thread-safe.
class Authenticator {
 public:
  // An empty table: every call is allowed, as an operator of kDefaultTenant.
  explicit Authenticator(TokenTable tokens) : tokens_(std::move(tokens)) {}

  bool wants_tokens() const { return !tokens_.empty(); }

  // The caller of `method` ("/chainfleet.v1.JobService/GetJob") by the token in "authorization: Bearer TOKEN". Needs
  // the metadata alone. UNAUTHENTICATED; PERMISSION_DENIED / NOT_ALLOWED: the token lacks the right that the method
  // needs. UNAVAILABLE after RefuseAll.
  absl::StatusOr<Principal> Authorize(std::string_view method, const CallMetadata& metadata) const;

  // The same of a call that is served. REQUIRES: a CallRecord (call_record.h), which tells the method.
  // RESOURCE_EXHAUSTED / TENANT_LIMIT: a call quota marked the call.
  absl::StatusOr<Principal> CallerOf(const grpc::CallbackServerContext& context) const;
  absl::StatusOr<std::string> TenantOf(const grpc::CallbackServerContext& context) const;
  absl::Status Check(const grpc::CallbackServerContext& context) const { return CallerOf(context).status(); }

  // Refuses every later call but health checks as UNAVAILABLE: the server is about to end.
  void RefuseAll() { ending_ = true; }

 private:
  const TokenTable tokens_;
  std::atomic<bool> ending_ = false;
};

}  // namespace chainfleet
