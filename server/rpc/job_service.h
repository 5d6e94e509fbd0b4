// JobService of jobs.proto: parse, one call, render.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "chainfleet/v1/jobs.grpc.pb.h"
#include "core/base/mutex.h"
#include "core/base/per_tenant.h"
#include "server/predict/serving/shard_port.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/call_quota.h"
#include "server/rpc/message_stream.h"
#include "server/rpc/services.h"
#include "server/rpc/streamed_request.h"

namespace chainfleet {

class JobService final : public StreamedService<v1::JobService::CallbackService> {
 public:
  // `shards` tells which workers serve predictions, `gate` admits the calls. GetServerInfo shows `rows_per_second` of
  // predictions and `calls`. The pointers outlive the service.
  JobService(ServiceParts parts, ShardPort* shards, CallGate* gate, const CallsInFlight* calls,
             PerTenant<int64_t> rows_per_second);

  // Ends every WatchJob, so that clients reconnect. Open watches would delay a shutdown to its deadline.
  void EndWatches();

  using Context = grpc::CallbackServerContext;
  grpc::ServerUnaryReactor* CreateJob(Context* context, const v1::CreateJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* GetJob(Context* context, const v1::GetJobRequest* request, v1::Job* response) override;
  grpc::ServerUnaryReactor* ListJobs(Context* context, const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerWriteReactor<v1::Job>* WatchJob(Context* context, const v1::WatchJobRequest* request) override;
  grpc::ServerUnaryReactor* ListEvents(Context* context, const v1::ListEventsRequest* request,
                                       v1::ListEventsResponse* response) override;
  grpc::ServerUnaryReactor* SetIntent(Context* context, const v1::SetIntentRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* ScaleJob(Context* context, const v1::ScaleJobRequest* request, v1::Job* response) override;
  grpc::ServerUnaryReactor* ListSegments(Context* context, const v1::ListSegmentsRequest* request,
                                         v1::ListSegmentsResponse* response) override;
  grpc::ServerUnaryReactor* GetTraces(Context* context, const v1::GetTracesRequest* request,
                                      v1::Traces* response) override;
  grpc::ServerWriteReactor<v1::Chunk>* ReadSegment(Context* context, const v1::ReadSegmentRequest* request) override;
  grpc::ServerUnaryReactor* CreateSnapshot(Context* context, const v1::CreateSnapshotRequest* request,
                                           v1::Snapshot* response) override;
  grpc::ServerUnaryReactor* ListSnapshots(Context* context, const v1::ListSnapshotsRequest* request,
                                          v1::ListSnapshotsResponse* response) override;
  grpc::ServerUnaryReactor* DeleteSnapshot(Context* context, const v1::DeleteSnapshotRequest* request,
                                           v1::DeleteSnapshotResponse* response) override;
  grpc::ServerUnaryReactor* SetAlias(Context* context, const v1::SetAliasRequest* request,
                                     v1::Alias* response) override;
  grpc::ServerUnaryReactor* ListAliases(Context* context, const v1::ListAliasesRequest* request,
                                        v1::ListAliasesResponse* response) override;
  grpc::ServerUnaryReactor* DeleteAlias(Context* context, const v1::DeleteAliasRequest* request,
                                        v1::DeleteAliasResponse* response) override;
  grpc::ServerUnaryReactor* ListDatasets(Context* context, const v1::ListDatasetsRequest* request,
                                         v1::ListDatasetsResponse* response) override;
  grpc::ServerUnaryReactor* ReadRows(Context* context, const v1::ReadRowsRequest* request,
                                     v1::DatasetRowValues* response) override;
  grpc::ServerUnaryReactor* DeleteDataset(Context* context, const v1::DeleteDatasetRequest* request,
                                          v1::DeleteDatasetResponse* response) override;
  grpc::ServerUnaryReactor* ShareDataset(Context* context, const v1::ShareRequest* request,
                                         v1::Dataset* response) override;
  grpc::ServerUnaryReactor* ListModels(Context* context, const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* DeleteModel(Context* context, const v1::DeleteModelRequest* request,
                                        v1::DeleteModelResponse* response) override;
  grpc::ServerUnaryReactor* ShareModel(Context* context, const v1::ShareRequest* request,
                                       v1::StoredModel* response) override;
  grpc::ServerUnaryReactor* ListWorkers(Context* context, const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;
  grpc::ServerUnaryReactor* DrainWorker(Context* context, const v1::DrainWorkerRequest* request,
                                        v1::Worker* response) override;
  grpc::ServerUnaryReactor* GetServerInfo(Context* context, const v1::GetServerInfoRequest* request,
                                          v1::ServerInfo* response) override;

 private:
  // Parses the spec and fills in its preset. NOT_FOUND if the preset needs a data set that does not exist.
  absl::StatusOr<JobSpec> ReadSpec(const std::string& tenant, const v1::JobSpec& proto) const;
  v1::Caller RenderCaller(const Principal& caller) const;

  static constexpr int kRowReads = 2;  // at a time: each holds a data-set shard and the reply that is made from it

  const ServiceParts parts_;
  ShardPort* const shards_;
  CallGate* const gate_;
  const CallsInFlight* const calls_;
  const PerTenant<int64_t> rows_per_second_;
  BoundedExecutor row_reads_;
  Mutex mutex_;
  std::vector<std::weak_ptr<StreamFeed<v1::Job>>> watches_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
