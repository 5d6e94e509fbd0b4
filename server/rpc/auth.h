// Authentication and authorisation: bearer tokens, the tenant and rights of each token, and one table that says which
// right each method needs.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/per_tenant.h"
#include "core/base/reread.h"
#include "core/base/status.h"
#include "core/base/trusted_proxies.h"
#include "server/control/access_tokens.h"
#include "server/rpc/call_limits.h"
#include "server/rpc/request_id.h"
#include "server/rpc/token_check.h"
#include "server/rpc/worker_admission.h"

namespace chainfleet {

// The rights of a token: bits of Principal::rights. kPredict, kRead and kWrite are for the caller's tenant.
enum Right : unsigned {
  kPredict = 1,      // predictions, and what a client of the Open Inference Protocol asks before
  kRead = 2,         // jobs, draws, data sets, evaluations
  kWrite = 4,        // create, change and delete these
  kOperate = 8,      // drain workers
  kPutModels = 16,   // store TorchScript files, which are programs
  kWork = 32,        // WorkerService, but for Join; only processes that have joined have it
  kAdminister = 64,  // make, list and revoke tokens, read the audit log
  kJoin = 128,       // let a worker join
  kFleet = 256,      // operate and administer for all tenants; see and delete their data sets and models; back up
};
// Operators and admins of kDefaultTenant are the fleet's. Those of other tenants lack kFleet and kPutModels.
unsigned RightsOf(Role role, const std::string& tenant);
// Returns the role with these rights, without regard to kPutModels; if they are of several roles, the highest.
Role RoleOf(unsigned rights);

// The ids of callers by JWT begin so.
inline constexpr char kJwtPrincipal[] = "oidc:";

// The caller of a method.
struct Principal {
  std::string id;  // TokenId of the caller's token, kJwtPrincipal and a JWT's subject; empty on a server without tokens
  std::string tenant;
  unsigned rights = 0;
  std::shared_ptr<const WorkerCertificate> worker = {};  // set for a process that has joined
  std::optional<absl::Time> expires_at = {};             // expiry of the caller's token; nullopt: none
  bool operator==(const Principal&) const = default;
  bool may(unsigned needed) const { return (rights & needed) == needed; }
  // The tenant whose tokens, workers and audit lines are the only ones for this caller; nullopt: those of all tenants.
  std::optional<std::string> only_tenant() const { return may(kFleet) ? std::nullopt : std::optional(tenant); }
};

// Bounds on all callers, whatever their rights.
struct AccessOptions {
  bool allow_modules = false;                                             // TorchScript files may be stored and sampled
  PerTenant<int64_t> tenant_calls = std::numeric_limits<int64_t>::max();  // calls of one tenant in flight at a time
  int64_t changes_at_once = limits::kChangesAtOnce;                       // changes of a caller; then one a second
  TrustedProxies proxies = {};                                            // tell the addresses of their callers
};

// Principals by the SHA-256 of their tokens.
using TokenTable = std::map<std::string, Principal>;

// `callers` has one line for each token: TOKEN [TENANT] [ROLE] [models], where ROLE is a name of a Role, writer if
// there is none. A token without a tenant belongs to kDefaultTenant. If there is only one caller token, and its
// line has no role, it is an admin's if `lone_is_admin`. `workers` is a list of worker tokens, separated by whitespace.
// nullopt means that the variable is not set; if neither is set, the table is empty and every call is allowed.
// `has_issuer`: callers may have tokens of an issuer instead. INVALID_ARGUMENT, naming the line and never the token: no
// token for callers, a token that is given twice or has fewer than 128 bits (22 characters, or 32 if all are
// hexadecimal digits), or an unknown word.
absl::StatusOr<TokenTable> ParseTokens(const std::optional<std::string>& callers,
                                       const std::optional<std::string>& workers = std::nullopt,
                                       bool has_issuer = false, bool lone_is_admin = true);

// Returns the number of tokens that are not a worker's.
int64_t NumCallers(const TokenTable& tokens);

// True if the holder of a token is an admin of the fleet.
bool HasFleetAdmin(const TokenTable& tokens);

// Reads [TENANT] [ROLE] [models] of a line of tokens. INVALID_ARGUMENT.
absl::StatusOr<Principal> ParseRights(const std::string& words);

class IdentityTokens;

// Thread-safe.
class Authenticator {
 public:
  // Knows the tokens that `given` and `stored` have during a call, the workers that `workers` let in and the tokens of
  // an issuer that `identities` knows (null: none). If there are no tokens now, and can be none of an issuer, every
  // call is allowed, as an admin of kDefaultTenant. The pointers outlive the authenticator.
  Authenticator(Reread<TokenTable> given, const AccessTokens* stored, const WorkerAdmission* workers,
                const Clock* clock, const IdentityTokens* identities = nullptr)
      : given_(std::move(given)),
        stored_(stored),
        workers_(workers),
        identities_(identities),
        clock_(clock),
        wants_tokens_(!given_.Current()->empty() || !stored->empty() || identities != nullptr) {}

  bool wants_tokens() const { return wants_tokens_; }

  // Returns the worker whose proof the metadata have, or whose token, whatever that caller may do; nullopt if there is
  // no known token. Errors of IdentityTokens.
  absl::StatusOr<std::optional<Principal>> Identify(const CallMetadata& metadata) const;

  // Returns the caller of `method` ("/chainfleet.v1.JobService/GetJob") by the token in "authorization: Bearer TOKEN".
  // Needs only the metadata. UNAUTHENTICATED: no known token, or one that has expired; a worker must join, also on a
  // server without tokens if its proof is refused. PERMISSION_DENIED / NOT_ALLOWED: the token lacks the right that the
  // method needs. UNAVAILABLE after RefuseAll, or by IdentityTokens.
  absl::StatusOr<Principal> Authorize(std::string_view method, const CallMetadata& metadata) const;

  // As Authorize, for a call that is being served. REQUIRES: a CallRecord (call_record.h), which records the method in
  // the metadata. RESOURCE_EXHAUSTED / TENANT_LIMIT: a call quota (call_quota.h) marked the call.
  absl::StatusOr<Principal> CallerOf(const grpc::CallbackServerContext& context) const;
  absl::StatusOr<std::string> TenantOf(const grpc::CallbackServerContext& context) const;
  absl::Status Check(const grpc::CallbackServerContext& context) const { return CallerOf(context).status(); }

  // Returns a check that a call of CallerOf repeats while it lasts; null on a server without tokens. UNAUTHENTICATED:
  // the token was revoked, has expired or belongs to another tenant now. PERMISSION_DENIED / NOT_ALLOWED: it lost the
  // right that the method needs. OK after RefuseAll and when an issuer's keys cannot be read: both refuse only new
  // calls. REQUIRES: as CallerOf. The authenticator outlives the check.
  TokenCheck TokenCheckOf(const grpc::CallbackServerContext& context) const;

  // UNAUTHENTICATED: the token by which the worker `caller` joined lets no workers of its tenant in any more.
  absl::Status CheckStillKnown(const Principal& caller) const;

  // True if a token with this SHA-256 would get the id of another token. Its holder would share that token's rate of
  // changes and its name in the audit log.
  bool HasOtherOfId(const std::string& sha256) const;

  // Logs a warning if the server wants tokens and no token or rule now makes anyone an admin of the fleet.
  void WarnWithoutFleetAdmin() const;

  // Refuses every later call except health checks as UNAVAILABLE: the server is shutting down.
  void RefuseAll() { ending_ = true; }

 private:
  absl::StatusOr<std::optional<Principal>> Find(const std::string& token) const;
  std::optional<Principal> FindWorker(const CallMetadata& metadata) const;
  // Also finds expired tokens.
  std::optional<TokenTable::value_type> FindById(const std::string& id) const;
  bool LetsWorkersIn(const std::string& token_id, const std::string& tenant) const;

  const Reread<TokenTable> given_;
  const AccessTokens* const stored_;
  const WorkerAdmission* const workers_;
  const IdentityTokens* const identities_;
  const Clock* const clock_;
  const bool wants_tokens_;
  std::atomic<bool> ending_ = false;
};

}  // namespace chainfleet
