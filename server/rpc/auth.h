// Who calls. One shared bearer token today; principals, tenants and roles take this place later.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "core/base/status.h"

namespace chainfleet {

class Authenticator {
 public:
  // `token` empty: everyone may call.
  explicit Authenticator(std::string token) : token_(std::move(token)) {}

  // UNAUTHENTICATED unless the call carries "authorization: Bearer TOKEN". Thread-safe.
  absl::Status Check(const grpc::CallbackServerContext& context) const;

 private:
  const std::string token_;
};

}  // namespace chainfleet
