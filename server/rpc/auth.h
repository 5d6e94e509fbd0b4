// Who calls: a bearer token, and the tenant that it is of. Principals and roles take their place here later.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <map>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// Tenants by token.
using TokenTable = std::map<std::string, std::string>;

// A line each: TOKEN, or TOKEN TENANT; without a tenant it is kDefaultTenant's. Empty lines are left out, an empty text
// is an empty table. INVALID_ARGUMENT naming the line, never the token: a third word, a tenant that is no name, a token
// given twice.
absl::StatusOr<TokenTable> ParseTokens(const std::string& text);

// Thread-safe.
class Authenticator {
 public:
  // An empty table: everyone may call, as kDefaultTenant.
  explicit Authenticator(TokenTable tenants) : tenants_(std::move(tenants)) {}

  // Of the token in "authorization: Bearer TOKEN". UNAUTHENTICATED; UNAVAILABLE after RefuseAll.
  absl::StatusOr<std::string> TenantOf(const grpc::CallbackServerContext& context) const;
  // For calls that are the same for all tenants.
  absl::Status Check(const grpc::CallbackServerContext& context) const { return TenantOf(context).status(); }

  // Refuses every later call as UNAVAILABLE: the server is about to end.
  void RefuseAll() { ending_ = true; }

 private:
  const TokenTable tenants_;
  std::atomic<bool> ending_ = false;
};

}  // namespace chainfleet
