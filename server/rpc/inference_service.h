// GRPCInferenceService of inference/grpc_service.proto, for public clients: parse, one call, render.
#pragma once

#include <memory>
#include <string>

#include "core/wire/inference_wire.h"
#include "inference/grpc_service.grpc.pb.h"
#include "server/predict/evaluation/evaluation_operations.h"
#include "server/predict/serving/batcher.h"
#include "server/predict/serving/shard_port.h"
#include "server/rpc/evaluation_use.h"
#include "server/rpc/failure_count.h"
#include "server/rpc/inference_stream.h"
#include "server/rpc/services.h"

namespace chainfleet {

class InferenceService final : public StreamedService<inference::GRPCInferenceService::CallbackService> {
 public:
  // All outlive the service.
  InferenceService(ServiceParts parts, Batcher* batcher, EvaluationOperations* evaluations, ShardPort* workers,
                   BytesInFlight* bytes);

  // Ends every ModelStreamInfer after its last answer. Open streams would delay a shutdown to its deadline.
  void EndStreams() { streams_.End(); }

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  Reactor* ServerLive(Context* context, const inference::ServerLiveRequest* request,
                      inference::ServerLiveResponse* response) override;
  Reactor* ServerReady(Context* context, const inference::ServerReadyRequest* request,
                       inference::ServerReadyResponse* response) override;
  Reactor* ModelReady(Context* context, const inference::ModelReadyRequest* request,
                      inference::ModelReadyResponse* response) override;
  Reactor* ServerMetadata(Context* context, const inference::ServerMetadataRequest* request,
                          inference::ServerMetadataResponse* response) override;
  Reactor* ModelMetadata(Context* context, const inference::ModelMetadataRequest* request,
                         inference::ModelMetadataResponse* response) override;
  Reactor* ModelInfer(Context* context, const inference::ModelInferRequest* request,
                      inference::ModelInferResponse* response) override;
  Reactor* ModelConfig(Context* context, const inference::ModelConfigRequest* request,
                       inference::ModelConfigResponse* response) override;
  Reactor* ModelStatistics(Context* context, const inference::ModelStatisticsRequest* request,
                           inference::ModelStatisticsResponse* response) override;
  Reactor* RepositoryIndex(Context* context, const inference::RepositoryIndexRequest* request,
                           inference::RepositoryIndexResponse* response) override;

 private:
  // A job that samples a network and belongs to the caller's tenant, found by name or alias, and the version to serve.
  // UNAUTHENTICATED. INVALID_ARGUMENT: a version was given with an alias, which has its own. NOT_FOUND, in the
  // protocol's words.
  struct Model {
    JobBrief job;
    int64_t version = 0;
    Targets targets;
    std::shared_ptr<const Version> pinned;  // version of the alias, if the name is one
  };
  absl::StatusOr<Model> Find(const Context& context, const std::string& name, const std::string& version) const;

  // `answer`: a shared pointer to a PendingAnswer or a StreamedAnswer.
  template <typename Answer>
  void Infer(const Context& context, inference::ModelInferRequest request, const Answer& answer);

  // Predicts as `prepared` says, and answers. Takes the inputs of `call`.
  template <typename Answer>
  void Send(PreparedQuery prepared, const std::shared_ptr<InferenceCall>& call, absl::Duration timeout,
            const FailureCount& failure, const std::shared_ptr<const JobPlan>& plan, const Answer& answer);

  const ServiceParts parts_;
  Batcher* const batcher_;
  EvaluationOperations* const evaluations_;
  ShardPort* const workers_;
  InferenceStreams streams_;
};

}  // namespace chainfleet
