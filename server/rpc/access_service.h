// AccessService of access.proto: parse, one call, render.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "chainfleet/v1/access.grpc.pb.h"
#include "server/rpc/message_stream.h"
#include "server/rpc/services.h"
#include "server/rpc/streamed_request.h"

namespace chainfleet {

class AccessService final : public StreamedService<v1::AccessService::CallbackService> {
 public:
  explicit AccessService(ServiceParts parts);

  using Context = grpc::CallbackServerContext;
  grpc::ServerUnaryReactor* CreateToken(Context* context, const v1::CreateTokenRequest* request,
                                        v1::Token* response) override;
  grpc::ServerUnaryReactor* ListTokens(Context* context, const v1::ListTokensRequest* request,
                                       v1::ListTokensResponse* response) override;
  grpc::ServerUnaryReactor* RevokeToken(Context* context, const v1::RevokeTokenRequest* request,
                                        v1::RevokeTokenResponse* response) override;
  grpc::ServerUnaryReactor* ListAudit(Context* context, const v1::ListAuditRequest* request,
                                      v1::ListAuditResponse* response) override;
  grpc::ServerWriteReactor<v1::BackupCopy>* Backup(Context* context, const v1::BackupRequest* request) override;
  grpc::ServerWriteReactor<v1::Chunk>* ReadObject(Context* context, const v1::ReadObjectRequest* request) override;

  // Ends the open calls of Backup: the server shuts down.
  void EndBackups();

 private:
  const ServiceParts parts_;
  Mutex mutex_;
  int64_t num_backups_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  std::vector<std::weak_ptr<StreamFeed<v1::BackupCopy>>> backups_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
