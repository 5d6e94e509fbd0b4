// WorkerService of worker.proto: parse, one call, render.
#pragma once

#include "chainfleet/v1/worker.grpc.pb.h"
#include "server/rpc/services.h"
#include "server/rpc/shard_streams.h"
#include "server/rpc/streamed_request.h"

namespace chainfleet {

class WorkerService final : public StreamedService<v1::WorkerService::CallbackService> {
 public:
  WorkerService(ServiceParts parts, ShardStreams* shards);

  using Context = grpc::CallbackServerContext;
  grpc::ServerUnaryReactor* Synchronize(Context* context, const v1::SynchronizeRequest* request,
                                        v1::SynchronizeReply* response) override;
  grpc::ServerUnaryReactor* CommitProgress(Context* context, const v1::CommitProgressRequest* request,
                                           v1::CommitProgressReply* response) override;
  grpc::ServerUnaryReactor* Join(Context* context, const v1::JoinRequest* request, v1::JoinReply* response) override;
  grpc::ServerUnaryReactor* SignUpload(Context* context, const v1::SignUploadRequest* request,
                                       v1::SignUploadReply* response) override;
  grpc::ServerWriteReactor<v1::Chunk>* GetBlob(Context* context, const v1::GetBlobRequest* request) override;

 private:
  ShardStreams::Reactor* OpenShards(Context* context);

  const ServiceParts parts_;
  ShardStreams* const shards_;
};

}  // namespace chainfleet
