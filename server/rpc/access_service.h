// AccessService of access.proto: parse, one call, render.
#pragma once

#include <utility>

#include "chainfleet/v1/access.grpc.pb.h"
#include "server/rpc/services.h"

namespace chainfleet {

class AccessService final : public v1::AccessService::CallbackService {
 public:
  explicit AccessService(ServiceParts parts) : parts_(std::move(parts)) {}

  using Context = grpc::CallbackServerContext;
  grpc::ServerUnaryReactor* CreateToken(Context* context, const v1::CreateTokenRequest* request,
                                        v1::Token* response) override;
  grpc::ServerUnaryReactor* ListTokens(Context* context, const v1::ListTokensRequest* request,
                                       v1::ListTokensResponse* response) override;
  grpc::ServerUnaryReactor* RevokeToken(Context* context, const v1::RevokeTokenRequest* request,
                                        v1::RevokeTokenResponse* response) override;
  grpc::ServerUnaryReactor* ListAudit(Context* context, const v1::ListAuditRequest* request,
                                      v1::ListAuditResponse* response) override;

 private:
  const ServiceParts parts_;
};

}  // namespace chainfleet
