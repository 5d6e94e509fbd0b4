// WorkerService of worker.proto: parse, one call, render.
#pragma once

#include "chainfleet/v1/worker.grpc.pb.h"
#include "server/rpc/services.h"
#include "server/rpc/shard_streams.h"

namespace chainfleet {

class WorkerService final : public v1::WorkerService::CallbackService {
 public:
  WorkerService(ServiceParts parts, ShardStreams* shards) : parts_(std::move(parts)), shards_(shards) {}

  using Context = grpc::CallbackServerContext;
  grpc::ServerUnaryReactor* Synchronize(Context* context, const v1::SynchronizeRequest* request,
                                        v1::SynchronizeReply* response) override;
  grpc::ServerUnaryReactor* CommitProgress(Context* context, const v1::CommitProgressRequest* request,
                                           v1::CommitProgressReply* response) override;
  grpc::ServerReadReactor<v1::PutBlobRequest>* PutBlob(Context* context, v1::PutBlobReply* response) override;
  grpc::ServerUnaryReactor* Join(Context* context, const v1::JoinRequest* request, v1::JoinReply* response) override;
  grpc::ServerUnaryReactor* SignUpload(Context* context, const v1::SignUploadRequest* request,
                                       v1::SignUploadReply* response) override;
  grpc::ServerWriteReactor<v1::Chunk>* GetBlob(Context* context, const v1::GetBlobRequest* request) override;
  grpc::ServerBidiReactor<v1::ShardUpdate, v1::ShardOrder>* ServeShards(Context* context) override;

 private:
  const ServiceParts parts_;
  ShardStreams* const shards_;
};

}  // namespace chainfleet
