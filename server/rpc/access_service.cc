#include "server/rpc/access_service.h"

#include "core/wire/types_wire.h"
#include "server/rpc/backup_copy.h"
#include "server/rpc/blob_stream.h"
#include "server/rpc/restore_call.h"
#include "server/rpc/unary_call.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kUsualLifetime = absl::Hours(90 * 24), kLongestLifetime = absl::Hours(10 * 365 * 24);

v1::Token RenderToken(const AccessToken& token) {
  v1::Token message;
  message.set_id(TokenId(token.sha256));
  message.set_tenant(token.tenant);
  message.set_role(static_cast<v1::Role>(static_cast<int>(token.role) + 1));  // 0 is "unspecified"
  message.set_puts_models(token.puts_models);
  message.set_note(token.note);
  message.set_created_by(token.created_by);
  *message.mutable_created_at() = ToProto(token.created_at);
  *message.mutable_expires_at() = ToProto(token.expires_at);
  message.set_max_uses(token.max_uses);
  message.set_uses(token.uses);
  return message;
}

// An admin of a tenant makes tokens of that tenant, and may not let anyone store programs.
absl::Status CheckMayMake(const AccessToken& token, const Principal& caller) {
  const std::optional<std::string> only = caller.only_tenant();
  if (!only || (token.tenant == *only && !token.puts_models)) return absl::OkStatus();
  return WithReason(
      absl::PermissionDeniedError(absl::StrCat("an admin of tenant ", *only,
                                               " makes tokens of that tenant only, and none that may put TorchScript "
                                               "models: ask an admin of the fleet, whose tenant is `default`")),
      "NOT_ALLOWED");
}

absl::Status CheckIdIsFree(const Authenticator& auth, const std::string& sha256) {
  if (!auth.HasOtherOfId(sha256)) return absl::OkStatus();
  return WithReason(absl::AlreadyExistsError(absl::StrCat("another token has the id ", TokenId(sha256),
                                                          ", the first digits of its SHA-256: make a new token")),
                    "TOKEN_EXISTS");
}

absl::StatusOr<AccessToken> ParseToken(const v1::CreateTokenRequest& request, const Principal& caller, absl::Time now) {
  if (request.role() == v1::ROLE_UNSPECIFIED || !v1::Role_IsValid(request.role())) {
    return InvalidFields({{"role", "give one of " + AllEnumNames<Role>()}});
  }
  const absl::Duration lifetime =
      request.lifetime_seconds() == 0 ? kUsualLifetime : absl::Seconds(request.lifetime_seconds());
  if (lifetime <= absl::ZeroDuration() || lifetime > kLongestLifetime) {
    return InvalidFields({{"lifetime_seconds", "give 1 second to 10 years, or 0 for 90 days"}});
  }
  AccessToken token{.sha256 = request.sha256(),
                    .tenant = request.tenant(),
                    .role = static_cast<Role>(request.role() - 1),
                    .puts_models = request.puts_models(),
                    .note = request.note(),
                    .created_by = caller.id,
                    .expires_at = now + lifetime,
                    .max_uses = request.max_uses()};
  if (token.tenant.empty()) {
    token.tenant = token.role == Role::kWorker && caller.may(kFleet) ? kEveryTenant : caller.tenant;
  }
  CHAINFLEET_RETURN_IF_ERROR(CheckMayMake(token, caller));
  CHAINFLEET_RETURN_IF_ERROR(CheckToken(token));
  return token;
}

}  // namespace

AccessService::AccessService(ServiceParts parts) : parts_(std::move(parts)) {
  TakeUpload<v1::RestoreResponse>(
      "/chainfleet.v1.AccessService/Restore", [this](Context* context, v1::RestoreResponse*) {
        return new RestoreCall(parts_, parts_.auth->Check(*context), parts_.auth->TokenCheckOf(*context));
      });
}

grpc::ServerUnaryReactor* AccessService::CreateToken(Context* context, const v1::CreateTokenRequest* request,
                                                     v1::Token* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    if (!parts_.auth->wants_tokens()) {
      return answer->Fail(WithReason(
          absl::FailedPreconditionError("this server was started without tokens, so everyone may call it: start it "
                                        "with CHAINFLEET_TOKEN, whose holder may then make others"),
          "TOKENS_OFF"));
    }
    const absl::StatusOr<AccessToken> token = ParseToken(*request, *caller, parts_.clock->Wall());
    if (!token.ok()) return answer->Fail(token.status());
    if (const absl::Status free = CheckIdIsFree(*parts_.auth, token->sha256); !free.ok()) return answer->Fail(free);
    parts_.tokens->Add(*token,
                       [answer](const absl::StatusOr<AccessToken>& added) { answer->Answer(added, RenderToken); });
  });
}

grpc::ServerUnaryReactor* AccessService::ListTokens(Context* context, const v1::ListTokensRequest* request,
                                                    v1::ListTokensResponse* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    answer->Answer(parts_.tokens->List(caller->only_tenant(), request->page_size(), request->page_token()),
                   [](const Page<AccessToken>& page) {
                     v1::ListTokensResponse list;
                     for (const AccessToken& token : page.items) *list.add_tokens() = RenderToken(token);
                     list.set_next_page_token(page.next_page_token);
                     return list;
                   });
  });
}

grpc::ServerUnaryReactor* AccessService::RevokeToken(Context* context, const v1::RevokeTokenRequest* request,
                                                     v1::RevokeTokenResponse* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    parts_.tokens->Revoke(request->id(), caller->only_tenant(), [answer](const absl::StatusOr<bool>& revoked) {
      answer->Answer(revoked, [](bool) { return v1::RevokeTokenResponse(); });
    });
  });
}

grpc::ServerUnaryReactor* AccessService::ListAudit(Context* context, const v1::ListAuditRequest* request,
                                                   v1::ListAuditResponse* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    parts_.executor->Schedule(
        [answer, audit = parts_.audit, from = request->page_token(), only_of = caller->only_tenant()] {
          answer->Answer(audit->Read(from, only_of), [](const AuditLog::Page& page) {
            v1::ListAuditResponse list;
            list.mutable_lines()->Assign(page.lines.begin(), page.lines.end());
            list.set_next_page_token(page.next);
            return list;
          });
        });
  });
}

grpc::ServerWriteReactor<v1::BackupCopy>* AccessService::Backup(Context* context, const v1::BackupRequest*) {
  const auto start = [&](const std::shared_ptr<StreamFeed<v1::BackupCopy>>& feed) {
    if (const absl::Status status = parts_.auth->Check(*context); !status.ok()) return feed->End(status);
    std::string id;  // no two at a time are equal
    {
      const MutexLock lock(&mutex_);
      id = absl::StrCat(++num_backups_);
      std::erase_if(backups_, [](const auto& backup) { return backup.expired(); });
      backups_.push_back(feed);
    }
    parts_.executor->Schedule([parts = parts_, id, feed] { ServeBackup(parts, id, feed); });
  };
  return ServeStream<v1::BackupCopy>(parts_.timers, context, parts_.auth->TokenCheckOf(*context), start);
}

grpc::ServerWriteReactor<v1::Chunk>* AccessService::ReadObject(Context* context, const v1::ReadObjectRequest* request) {
  if (const absl::Status status = parts_.auth->Check(*context); !status.ok()) return RefuseStream<v1::Chunk>(status);
  return StreamBlob(request->is_copy() ? parts_.backup_copies : parts_.blobs, parts_.executor, request->name(),
                    parts_.auth->TokenCheckOf(*context));
}

void AccessService::EndBackups() {
  const MutexLock lock(&mutex_);
  for (const auto& backup : backups_) {
    if (const auto feed = backup.lock()) feed->End(absl::UnavailableError("the server shuts down"));
  }
}

}  // namespace chainfleet
