// The methods of Client for tokens and the audit log.
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
  return Call<v1::AccessService>(&v1::AccessService::Stub::RevokeToken, request).status();
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

}  // namespace chainfleet
