// The methods of Client for tokens, the audit log and backups.
#include <fstream>

#include "absl/strings/str_cat.h"
#include "client/lib/client_calls.h"

namespace chainfleet {

absl::StatusOr<v1::Token> Client::CreateToken(const v1::CreateTokenRequest& request) {
  return Call<v1::AccessService>(&v1::AccessService::Stub::CreateToken, request);
}

absl::StatusOr<std::vector<v1::Token>> Client::ListTokens() {
  return AllPages<v1::Token>(
      v1::ListTokensRequest(),
      [&](const auto& page) { return Call<v1::AccessService>(&v1::AccessService::Stub::ListTokens, page); },
      [](auto& reply) { return reply.mutable_tokens(); });
}

absl::Status Client::RevokeToken(const std::string& id) {
  v1::RevokeTokenRequest request;
  request.set_id(id);
  return Deleted(Call<v1::AccessService>(&v1::AccessService::Stub::RevokeToken, request).status());
}

absl::Status Client::ReadAudit(const std::function<absl::Status(const std::string& line)>& on_line) {
  v1::ListAuditRequest request;
  do {
    auto page = Call<v1::AccessService>(&v1::AccessService::Stub::ListAudit, request);
    CHAINFLEET_RETURN_IF_ERROR(page.status());
    for (const std::string& line : page->lines()) CHAINFLEET_RETURN_IF_ERROR(on_line(line));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

absl::Status Client::Backup(const std::function<absl::Status(const v1::BackupCopy&)>& copy) {
  const absl::Duration limit = options_.transfer_timeout.value_or(absl::InfiniteDuration());
  return Repeat(limit, [&](grpc::ClientContext* context) -> absl::Status {
    const auto stub = Stub<v1::AccessService>();
    const auto reader = stub->Backup(context, v1::BackupRequest());
    v1::BackupCopy names;
    if (!reader->Read(&names)) return FromGrpc(reader->Finish());
    const absl::Status copied = copy(names);
    context->TryCancel();
    const absl::Status ended = FromGrpc(reader->Finish());
    if (absl::IsCancelled(ended)) return copied;
    return ended.ok() ? absl::UnavailableError("the server ended the backup") : ended;
  });
}

absl::Status Client::ReadObject(const std::string& name, bool is_copy, const std::string& path) {
  v1::ReadObjectRequest request;
  request.set_name(name);
  request.set_is_copy(is_copy);
  const absl::Duration limit = options_.transfer_timeout.value_or(kTransferTimeout);
  return Repeat(limit, [&](grpc::ClientContext* context) -> absl::Status {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    const auto stub = Stub<v1::AccessService>();
    const auto reader = stub->ReadObject(context, request);
    for (v1::Chunk chunk; reader->Read(&chunk);) file << chunk.data();
    CHAINFLEET_RETURN_IF_ERROR(FromGrpc(reader->Finish()));
    if (file.flush()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("cannot write ", path, ": is its disk full?"));
  });
}

}  // namespace chainfleet
