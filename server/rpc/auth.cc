#include "server/rpc/auth.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/environment.h"
#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/domain/fields.h"
#include "core/domain/tenant.h"
#include "core/domain/worker_protocol.h"
#include "core/store/draw_codec/sha256.h"
#include "core/store/state_store/state_change.h"
#include "server/rpc/identity_tokens.h"

namespace chainfleet {
namespace {

constexpr char kSynchronize[] = "/chainfleet.v1.WorkerService/Synchronize";

constexpr unsigned kNoToken = 0;  // health checks need no token

// The right that each method needs. Methods that are not here are refused to all.
const std::unordered_map<std::string_view, unsigned>& Needs() {
  static const auto* const needs = new std::unordered_map<std::string_view, unsigned>{
      {"/grpc.health.v1.Health/Check", kNoToken},
      {"/grpc.health.v1.Health/Watch", kNoToken},
      {"/chainfleet.v1.AccessService/CreateToken", kAdminister},
      {"/chainfleet.v1.AccessService/ListTokens", kAdminister},
      {"/chainfleet.v1.AccessService/RevokeToken", kAdminister},
      {"/chainfleet.v1.AccessService/ListAudit", kAdminister},
      {"/chainfleet.v1.AccessService/Backup", kAdminister | kFleet},
      {"/chainfleet.v1.AccessService/ReadObject", kAdminister | kFleet},
      {"/chainfleet.v1.AccessService/Restore", kAdminister | kFleet},
      {"/chainfleet.v1.JobService/CreateJob", kWrite},
      {"/chainfleet.v1.JobService/GetJob", kRead},
      {"/chainfleet.v1.JobService/ListJobs", kRead},
      {"/chainfleet.v1.JobService/WatchJob", kRead},
      {"/chainfleet.v1.JobService/ListEvents", kRead},
      {"/chainfleet.v1.JobService/SetIntent", kWrite},
      {"/chainfleet.v1.JobService/ScaleJob", kWrite},
      {"/chainfleet.v1.JobService/ListSegments", kRead},
      {"/chainfleet.v1.JobService/GetTraces", kRead},
      {"/chainfleet.v1.JobService/ReadSegment", kRead},
      {"/chainfleet.v1.JobService/CreateSnapshot", kWrite},
      {"/chainfleet.v1.JobService/ListSnapshots", kRead},
      {"/chainfleet.v1.JobService/DeleteSnapshot", kWrite},
      {"/chainfleet.v1.JobService/SetAlias", kWrite},
      {"/chainfleet.v1.JobService/ListAliases", kRead},
      {"/chainfleet.v1.JobService/DeleteAlias", kWrite},
      {"/chainfleet.v1.JobService/PutDataset", kWrite},
      {"/chainfleet.v1.JobService/ListDatasets", kRead},
      {"/chainfleet.v1.JobService/ReadRows", kRead},
      {"/chainfleet.v1.JobService/DeleteDataset", kWrite},
      {"/chainfleet.v1.JobService/ShareDataset", kWrite},
      {"/chainfleet.v1.JobService/PutModel", kWrite},
      {"/chainfleet.v1.JobService/ListModels", kRead},
      {"/chainfleet.v1.JobService/DeleteModel", kWrite},
      {"/chainfleet.v1.JobService/ShareModel", kWrite},
      {"/chainfleet.v1.JobService/ListWorkers", kRead},
      {"/chainfleet.v1.JobService/DrainWorker", kOperate},
      {"/chainfleet.v1.JobService/GetServerInfo", kPredict},
      {"/chainfleet.v1.PredictService/Predict", kPredict},
      {"/chainfleet.v1.PredictService/Evaluate", kWrite},
      {"/chainfleet.v1.PredictService/StartEvaluation", kWrite},
      {"/chainfleet.v1.PredictService/GetEvaluation", kRead},
      {"/chainfleet.v1.PredictService/ListEvaluations", kRead},
      {"/chainfleet.v1.PredictService/CancelEvaluation", kWrite},
      {"/inference.GRPCInferenceService/ServerLive", kPredict},
      {"/inference.GRPCInferenceService/ServerReady", kPredict},
      {"/inference.GRPCInferenceService/ServerMetadata", kPredict},
      {"/inference.GRPCInferenceService/ModelReady", kPredict},
      {"/inference.GRPCInferenceService/ModelMetadata", kPredict},
      {"/inference.GRPCInferenceService/ModelConfig", kPredict},
      {"/inference.GRPCInferenceService/ModelInfer", kPredict},
      {"/inference.GRPCInferenceService/ModelStreamInfer", kPredict},
      {"/inference.GRPCInferenceService/ModelStatistics", kRead},
      {"/inference.GRPCInferenceService/RepositoryIndex", kRead},
      {"/chainfleet.v1.WorkerService/Join", kJoin},
      {kSynchronize, kWork},
      {"/chainfleet.v1.WorkerService/CommitProgress", kWork},
      {"/chainfleet.v1.WorkerService/PutBlob", kWork},
      {"/chainfleet.v1.WorkerService/SignUpload", kWork},
      {"/chainfleet.v1.WorkerService/GetBlob", kWork},
      {"/chainfleet.v1.WorkerService/ServeShards", kWork},
  };
  return *needs;
}

std::optional<unsigned> NeededBy(std::string_view method) {
  const auto found = Needs().find(method);
  return found == Needs().end() ? std::nullopt : std::optional(found->second);
}

absl::Status Unauthenticated(unsigned needed, bool given) {
  if (needed == kWork) {
    return WithReason(absl::UnauthenticatedError("no process that has joined sent this call, or its certificate has "
                                                 "expired or its token was revoked: join again"),
                      "UNAUTHENTICATED");
  }
  const char* variable = needed == kJoin ? "CHAINFLEET_WORKER_TOKEN" : "CHAINFLEET_TOKEN";
  return WithReason(
      absl::UnauthenticatedError(
          given ? absl::StrCat("this server does not know the token: set ", variable, " to one of its tokens")
                : absl::StrCat("this server wants a token: set ", variable, " or ", variable, "_FILE")),
      "UNAUTHENTICATED");
}

absl::Status NotAllowed(std::string_view method, unsigned needed) {
  const char* why = "no token allows this method";
  if (needed == kPredict) why = "a worker's token lets workers join, and nothing else";
  if (needed == kRead) why = "it needs a token that may read: neither a predictor's nor a worker's";
  if (needed == kWrite) why = "it needs a token that may write, neither a reader's nor a predictor's";
  if (needed == kOperate) why = "it needs an operator's or an admin's token";
  if (needed == kAdminister) why = "it needs an admin's token";
  if (needed == (kAdminister | kFleet)) why = "it needs a token of an admin of the fleet, whose tenant is `default`";
  if (needed == kJoin) why = "it needs a worker's token: set CHAINFLEET_WORKER_TOKEN";
  if (needed == kWork) why = "only workers that have joined make it: upgrade the worker to the server's release";
  return WithReason(
      absl::PermissionDeniedError(absl::StrCat("the token does not allow ", std::string(method), ": ", why)),
      "NOT_ALLOWED");
}

absl::Status TooManyCalls(const Principal& caller) {
  const std::string message =
      absl::StrCat("tenant ", caller.tenant,
                   " has as many calls in flight as --tenant-calls allows: try again when some have ended");
  return WithRetryAfter(BoundReached("tenant_calls", message, "TENANT_LIMIT"), absl::Seconds(1));
}

absl::Status TooManyChanges(const Principal& caller) {
  const bool has_jwt = caller.id.starts_with(kJwtPrincipal);
  const std::string message =
      absl::StrCat("the caller ", caller.id,
                   " has changed as much as the audit log records of one caller: send changes more slowly, ",
                   has_jwt ? "one in 10 s; callers by JWT of a tenant together, one a second" : "one a second");
  return WithRetryAfter(BoundReached("caller_changes", message, "TENANT_LIMIT"), absl::Seconds(has_jwt ? 10 : 1));
}

absl::Status AddToken(const std::string& token, Principal principal, TokenTable* tokens) {
  CHAINFLEET_RETURN_IF_ERROR(CheckStrength(token));
  if (!tokens->emplace(Sha256Hex(token), std::move(principal)).second) {
    return absl::InvalidArgumentError("this token was given before");
  }
  return absl::OkStatus();
}

std::vector<std::string> WordsOf(const std::string& text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
}

bool IsCaller(const TokenTable::value_type& entry) { return entry.second.may(kPredict); }

Principal PrincipalOf(const AccessToken& token) {
  return {.id = TokenId(token.sha256),
          .tenant = token.tenant,
          .rights = RightsOf(token.role, token.tenant) | (token.puts_models ? kPutModels : 0u),
          .expires_at = token.expires_at};
}

}  // namespace

int64_t NumCallers(const TokenTable& tokens) { return std::ranges::count_if(tokens, IsCaller); }

bool HasFleetAdmin(const TokenTable& tokens) {
  return std::ranges::any_of(tokens, [](const auto& entry) { return entry.second.may(kFleet | kAdminister); });
}

absl::StatusOr<TokenTable> ParseTokens(const std::optional<std::string>& callers,
                                       const std::optional<std::string>& workers, bool has_issuer, bool lone_is_admin) {
  TokenTable tokens;
  if (!callers && !workers) return tokens;
  const std::vector<std::string> lines = absl::StrSplit(callers.value_or(""), '\n');
  const auto is_role = [](const std::string& word) { return EnumFromName<Role>(word).has_value(); };
  bool has_role = false;  // the line of the last caller names one
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string> words = WordsOf(lines[i]);
    if (words.empty()) continue;
    absl::StatusOr<Principal> principal = ParseRights(absl::StrJoin(words.begin() + 1, words.end(), " "));
    if (principal.ok()) principal->id = TokenId(Sha256Hex(words[0]));
    if (principal.ok() && principal->may(kPredict)) has_role = std::ranges::any_of(words, is_role);
    const absl::Status added = principal.ok() ? AddToken(words[0], *std::move(principal), &tokens) : principal.status();
    if (!added.ok()) return Annotate(added, absl::StrCat("tokens, line ", i + 1));
  }
  const int64_t callers_given = NumCallers(tokens);
  if (callers_given == 0 && (callers || !has_issuer)) {
    return absl::InvalidArgumentError(
        "there is no token for callers: give one in CHAINFLEET_TOKEN or CHAINFLEET_TOKEN_FILE, or set neither and no "
        "CHAINFLEET_WORKER_TOKEN");
  }
  if (callers_given == 1 && !has_role && lone_is_admin) {
    Principal& only = std::ranges::find_if(tokens, IsCaller)->second;
    only.rights |= RightsOf(Role::kAdmin, only.tenant);
  }
  if (!workers) return tokens;
  const std::vector<std::string> words = WordsOf(*workers);
  if (words.empty()) return absl::InvalidArgumentError("CHAINFLEET_WORKER_TOKEN: is empty");
  for (const std::string& word : words) {
    CHAINFLEET_RETURN_IF_ERROR(
        Annotate(AddToken(word, {TokenId(Sha256Hex(word)), kEveryTenant, kJoin}, &tokens), "CHAINFLEET_WORKER_TOKEN"));
  }
  return tokens;
}

absl::StatusOr<Principal> ParseRights(const std::string& words) {
  std::string tenant;
  std::optional<Role> role;
  unsigned more = 0;
  for (const std::string& word : WordsOf(words)) {
    const std::optional<Role> named = EnumFromName<Role>(word);
    if (word == "models") {
      more = kPutModels;
    } else if (named && !role) {
      role = named;
    } else if (named || !tenant.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("give [TENANT] [ROLE] [models], with a role of ", AllEnumNames<Role>()));
    } else {
      if (!CheckName("tenant", word).ok()) {  // its error would quote a token that is in the wrong place
        return absl::InvalidArgumentError("a word is neither a role nor a name of 1-63 of a-z, 0-9 and '-'");
      }
      tenant = word;
    }
  }
  const bool is_worker = role == Role::kWorker;
  if (is_worker && more != 0) return absl::InvalidArgumentError("a worker's token has no other rights");
  if (tenant.empty()) tenant = is_worker ? kEveryTenant : kDefaultTenant;
  return Principal{"", tenant, RightsOf(role.value_or(Role::kWriter), tenant) | more};
}

unsigned RightsOf(Role role, const std::string& tenant) {
  constexpr unsigned kReader = kPredict | kRead, kWriter = kReader | kWrite;
  const unsigned operating = kWriter | kOperate | (tenant == kDefaultTenant ? kFleet | kPutModels : 0u);
  switch (role) {
    case Role::kWriter:
      return kWriter;
    case Role::kReader:
      return kReader;
    case Role::kPredictor:
      return kPredict;
    case Role::kOperator:
      return operating;
    case Role::kAdmin:
      return operating | kAdminister;
    case Role::kWorker:
      return kJoin;
  }
  return 0;
}

Role RoleOf(unsigned rights) {
  if ((rights & kAdminister) != 0) return Role::kAdmin;
  if ((rights & kOperate) != 0) return Role::kOperator;
  if ((rights & kWrite) != 0) return Role::kWriter;
  if ((rights & kRead) != 0) return Role::kReader;
  return (rights & kPredict) != 0 ? Role::kPredictor : Role::kWorker;
}

// Looks up a digest, so that the response time tells nothing about the tokens.
absl::StatusOr<std::optional<Principal>> Authenticator::Find(const std::string& token) const {
  const std::string sha256 = Sha256Hex(token);
  const std::shared_ptr<const TokenTable> given = given_.Current();
  if (const auto found = given->find(sha256); found != given->end()) return found->second;
  const std::optional<AccessToken> stored = stored_->Find(sha256);
  if (!stored && identities_ != nullptr && IdentityTokens::HasForm(token)) return identities_->Find(token);
  if (!stored || clock_->Wall() >= stored->expires_at) return std::nullopt;
  return PrincipalOf(*stored);
}

std::optional<TokenTable::value_type> Authenticator::FindById(const std::string& id) const {
  const std::shared_ptr<const TokenTable> given = given_.Current();
  const auto found = given->lower_bound(id);
  if (found != given->end() && found->second.id == id) return *found;
  const std::optional<AccessToken> stored = stored_->Find(id);
  return stored ? std::optional<TokenTable::value_type>({stored->sha256, PrincipalOf(*stored)}) : std::nullopt;
}

// After a revocation, an admin of a tenant may make a token of that tenant that has the same id.
bool Authenticator::LetsWorkersIn(const std::string& token_id, const std::string& tenant) const {
  if (!wants_tokens_) return true;
  const std::optional<TokenTable::value_type> token = FindById(token_id);
  return token && token->second.may(kJoin) && token->second.tenant == tenant;
}

bool Authenticator::HasOtherOfId(const std::string& sha256) const {
  const std::optional<TokenTable::value_type> token = FindById(TokenId(sha256));
  return token && token->first != sha256;
}

void Authenticator::WarnWithoutFleetAdmin() const {
  if (!wants_tokens_ || HasFleetAdmin(*given_.Current()) || stored_->HasAdminOf(kDefaultTenant, clock_->Wall()) ||
      (identities_ != nullptr && identities_->HasRuleFor(kFleet | kAdminister))) {
    return;
  }
  Log(LogLevel::kWarning,
      "no admin of the fleet: nobody may back up or revoke tokens of all tenants; give a token the role admin and no "
      "tenant");
}

absl::Status Authenticator::CheckStillKnown(const Principal& caller) const {
  if (LetsWorkersIn(caller.id, caller.tenant)) return absl::OkStatus();
  return absl::UnauthenticatedError(absl::StrCat("token ", caller.id, " was revoked"));
}

// A worker stays when its token expires, but not when the token is revoked or gets another tenant or role.
std::optional<Principal> Authenticator::FindWorker(const CallMetadata& metadata) const {
  const auto proof = metadata.find(kWorkerProofHeader);
  if (workers_ == nullptr || proof == metadata.end()) return std::nullopt;
  const auto certificate = workers_->Verify({proof->second.data(), proof->second.size()});
  if (certificate == nullptr) return std::nullopt;
  const WorkerClaims& claims = certificate->claims();
  if (!LetsWorkersIn(claims.token, claims.tenant)) return std::nullopt;
  return Principal{claims.token, claims.tenant, kWork | kJoin, certificate};
}

absl::StatusOr<std::optional<Principal>> Authenticator::Identify(const CallMetadata& metadata) const {
  constexpr std::string_view kScheme = "Bearer ";
  const auto [begin, end] = metadata.equal_range("authorization");
  std::optional<Principal> caller = FindWorker(metadata);
  for (auto it = begin; it != end && !caller; ++it) {
    const std::string_view given(it->second.data(), it->second.size());
    if (!given.starts_with(kScheme)) continue;
    CHAINFLEET_ASSIGN_OR_RETURN(caller, Find(std::string(given.substr(kScheme.size()))));
  }
  return caller;
}

absl::StatusOr<Principal> Authenticator::Authorize(std::string_view method, const CallMetadata& metadata) const {
  const std::optional<unsigned> needed = NeededBy(method);
  if (ending_ && needed != kNoToken) return absl::UnavailableError("the server is ending: repeat the call");
  if (!wants_tokens_) {
    const std::optional<Principal> worker = FindWorker(metadata);
    // Else draws would have no signature until the worker renews its certificate. In this call alone, because workers
    // of 0.1 give up a chain if several calls in flight are refused so.
    if (!worker && workers_ != nullptr && method == kSynchronize && metadata.count(kWorkerProofHeader) > 0) {
      return Unauthenticated(kWork, /*given=*/false);
    }
    return Principal{"", kDefaultTenant, RightsOf(Role::kAdmin, kDefaultTenant) | kJoin | kWork,
                     worker ? worker->worker : nullptr};
  }
  if (needed == kNoToken) return Principal{"", kDefaultTenant, kNoToken};
  CHAINFLEET_ASSIGN_OR_RETURN(std::optional<Principal> caller, Identify(metadata));
  if (!caller) return Unauthenticated(needed.value_or(kPredict), metadata.count("authorization") > 0);
  if (needed && caller->may(*needed)) return *std::move(caller);
  return NotAllowed(method, needed.value_or(kNoToken));
}

absl::StatusOr<Principal> Authenticator::CallerOf(const grpc::CallbackServerContext& context) const {
  const CallMetadata& metadata = context.client_metadata();
  const auto method = metadata.find(kMethodHeader);
  if (method == metadata.end()) return Authorize("", metadata);
  absl::StatusOr<Principal> caller = Authorize({method->second.data(), method->second.size()}, metadata);
  const auto mark = metadata.find(kOverQuotaHeader);
  if (!caller.ok() || mark == metadata.end()) return caller;
  return mark->second == kTooManyChanges ? TooManyChanges(*caller) : TooManyCalls(*caller);
}

TokenCheck Authenticator::TokenCheckOf(const grpc::CallbackServerContext& context) const {
  if (!wants_tokens_) return nullptr;
  std::multimap<std::string, std::string> kept;  // the call's own metadata end with it
  std::string method;
  for (const auto& [key, value] : context.client_metadata()) {
    const std::string text(value.data(), value.size());
    if (key == kMethodHeader) method = text;
    if (key == "authorization" || key == kWorkerProofHeader) kept.emplace(std::string(key.data(), key.size()), text);
  }
  const absl::StatusOr<std::string> tenant = TenantOf(context);
  return [this, kept = std::move(kept), method, tenant]() -> absl::Status {
    const absl::StatusOr<Principal> caller = Authorize(method, CallMetadata(kept.begin(), kept.end()));
    if (absl::IsUnavailable(caller.status())) return absl::OkStatus();
    if (!caller.ok() || !tenant.ok() || caller->tenant == *tenant) return caller.status();
    return WithReason(absl::UnauthenticatedError("the token belongs to another tenant now: repeat the call"),
                      "UNAUTHENTICATED");
  };
}

absl::StatusOr<std::string> Authenticator::TenantOf(const grpc::CallbackServerContext& context) const {
  CHAINFLEET_ASSIGN_OR_RETURN(Principal caller, CallerOf(context));
  return std::move(caller.tenant);
}

}  // namespace chainfleet
