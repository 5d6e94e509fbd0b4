// The composition root of chainfleet-server: opens the stores, makes everything of the lower floors, and takes it down
// in order.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/metrics/metrics.h"
#include "core/store/blob_store/blob_store.h"
#include "core/store/blob_store/http_transport.h"
#include "core/store/blob_store/s3_client.h"
#include "core/store/state_store/state_store.h"
#include "server/adapters/dispatcher_draw_catalog.h"
#include "server/adapters/evaluation_store.h"
#include "server/control/coordinator.h"
#include "server/control/draw_verifier.h"
#include "server/control/garbage_collector.h"
#include "server/control/retention_keeper.h"
#include "server/election.h"
#include "server/intake/dataset_roots.h"
#include "server/intake/upload_limits.h"
#include "server/predict/serving/batcher.h"
#include "server/rpc/grpc_server.h"
#include "server/rpc/held_reply.h"
#include "server/scale/scale_loop.h"
#include "server/telemetry/control_metrics.h"
#include "server/telemetry/predict_metrics.h"

namespace chainfleet {

// Workers as Slurm jobs, asked for when chains wait.
struct SlurmOptions {
  ScaleSettings scale;
  std::string script;                    // what sbatch gets
  std::string address;                   // where workers find the coordinators; empty: this one
  std::vector<std::string> environment;  // of this process, NAME=VALUE
};

struct ServerOptions {
  std::string data_directory;
  std::string state = "sqlite";    // in the data directory, or postgresql://...
  std::string advertise;           // where others reach this coordinator; empty: `listen`
  std::optional<S3Settings> s3;    // where objects live; none: in the data directory
  std::string s3_public_endpoint;  // of S3, as workers reach it; empty: as here; "off": objects come through the server
  std::vector<std::string> dataset_folders;  // below which data sets may be named by file://, see DatasetRoots
  std::vector<S3Settings> dataset_buckets;   // and by s3://, below their prefixes
  std::string listen = "127.0.0.1:7400";
  std::string metrics_listen = "127.0.0.1:7401";  // "off": none
  TokenTable tokens;                              // none: everyone may call
  TenantLimits tenant_limits{.jobs = 10'000, .chains = 65'536, .stored_bytes = int64_t{4} << 40};
  AccessOptions access{.tenant_calls = 4096};
  ShareSettings shares;
  absl::Duration lease = limits::kLeaseTtl;
  int threads = 0;                                          // of the executor; 0: by the cores
  BatchLimits batches;                                      // of predictions
  absl::Duration longest_call = limits::kEvaluateDeadline;  // of those that read draws
  std::optional<SlurmOptions> slurm;                        // none: workers come and go as others order them
  Opening opening = Opening::kUsual;
  bool objects_moved = false;   // once, after they were copied to where this server looks for them
  bool collect_garbage = true;  // false: no object is deleted, so that both stores may be copied
};

// WaitToLead for --state postgresql://..., with metrics that say that this is a standby. Also ALREADY_EXISTS /
// PORT_TAKEN, FAILED_PRECONDITION / OTHER_STORE: the objects of this database are elsewhere.
absl::StatusOr<std::optional<Lead>> WaitToLead(const ServerOptions& options,
                                               const std::function<bool(absl::Duration)>& pause);

class Server {
 public:
  // FAILED_PRECONDITION / IN_USE: another server has the data directory. ALREADY_EXISTS / PORT_TAKEN. DATA_LOSS,
  // FAILED_PRECONDITION / SCHEMA_TOO_NEW, NO_CONDITIONAL_PUT or OTHER_STORE, UNAVAILABLE, RESOURCE_EXHAUSTED from the
  // stores. `on_store_lost` runs once when the process must end and reload. `lead`: of WaitToLead if options.state is
  // PostgreSQL.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options, std::optional<Lead> lead,
                                                       std::function<void(const absl::Status&)> on_store_lost);

  // Ends the RPCs within `deadline`, then what lies below them.
  ~Server();

  int port() const { return grpc_->port(); }
  Coordinator& coordinator() { return *coordinator_; }
  const std::string& metrics_address() const { return metrics_address_; }
  void Shutdown(absl::Duration deadline);

 private:
  Server() = default;
  absl::Status OpenStores(const ServerOptions& options);
  absl::Status OpenSqlite(const ServerOptions& options);
  absl::Status LockFolder(absl::Duration patience);
  absl::Status OpenBlobs(const ServerOptions& options);
  void AddDatasetRoots(const ServerOptions& options);
  void SignUploads(const ServerOptions& options);
  absl::Status CheckRestored(const std::function<void(const absl::Status&)>& on_store_lost);
  void MakeThreads(const ServerOptions& options);
  absl::Status Compose(const ServerOptions& options, std::function<void(const absl::Status&)> on_store_lost);
  absl::Status ServeMetrics(const std::string& address);
  absl::Status StartScaling(const SlurmOptions& options, const std::string& listen);
  std::vector<GaugeFamily> ShowFleet();

  // Destroyed from the last to the first: RPCs, then the executor's threads with the tasks that are due, then what
  // those use.
  SystemClock clock_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<StateStore> state_;
  // Ends right before the store, after all that writes: a standby leads as soon as the lead is given up, and the next
  // write here would fail as a lost store does.
  std::unique_ptr<LeadKeeper> lead_;
  std::unique_ptr<ThreadPool> lead_thread_;
  std::unique_ptr<HttpTransport> s3_transport_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<S3Client> s3_public_;  // signs, sends nothing
  DatasetRoots dataset_roots_;
  const ByteBudget upload_budget_{limits::kMaxUploadsBytes};
  const ByteBudget reply_budget_{kMaxHeldReplyBytes};
  std::unique_ptr<Authenticator> auth_;
  MetricsRegistry registry_{"server"};
  ServerMetrics metrics_{&registry_};
  ControlMetrics control_metrics_{&registry_};
  PredictMetrics predict_metrics_{&registry_};
  InferenceStatistics statistics_;
  std::string data_directory_, metrics_address_;
  std::unique_ptr<Strand> diagnoses_;  // one at a time: they compute
  std::unique_ptr<TraceTable> traces_;
  std::unique_ptr<FinalFindings> findings_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<UploadSigner> uploads_;
  std::unique_ptr<ShardStreams> shards_;
  std::unique_ptr<DispatcherDrawCatalog> catalog_;
  std::unique_ptr<ShardQueue> queue_;
  std::unique_ptr<PredictRouter> router_;
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<EvaluationLog> evaluation_log_;
  std::unique_ptr<EvaluationOperations> evaluations_;
  std::unique_ptr<Scaler> scaler_;
  std::unique_ptr<ScaleLoop> scale_loop_;
  std::unique_ptr<BoundedExecutor> store_calls_;  // the last tasks of `threads_` use it and what follows
  std::unique_ptr<DatasetReads> dataset_reads_;
  std::unique_ptr<ObjectChecks> object_checks_;
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<GarbageCollector> garbage_;
  std::unique_ptr<DrawVerifier> verifier_;
  std::unique_ptr<RetentionKeeper> retention_;
  std::unique_ptr<GrpcServer> grpc_;
};

}  // namespace chainfleet
