#include "server/rpc/auth.h"

namespace chainfleet {
namespace {

// In constant time: the answer must not tell how much of a guess was right.
bool SameSecret(const grpc::string_ref& given, const std::string& wanted) {
  if (given.size() != wanted.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    difference |= static_cast<unsigned char>(given.data()[i]) ^ static_cast<unsigned char>(wanted[i]);
  }
  return difference == 0;
}

}  // namespace

absl::Status Authenticator::Check(const grpc::CallbackServerContext& context) const {
  if (token_.empty()) return absl::OkStatus();
  const std::string wanted = "Bearer " + token_;
  const auto range = context.client_metadata().equal_range("authorization");
  for (auto it = range.first; it != range.second; ++it) {
    if (SameSecret(it->second, wanted)) return absl::OkStatus();
  }
  return WithReason(
      absl::UnauthenticatedError("this server wants a token: set CHAINFLEET_TOKEN or CHAINFLEET_TOKEN_FILE"),
      "UNAUTHENTICATED");
}

}  // namespace chainfleet
