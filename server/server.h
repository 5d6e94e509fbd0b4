// The composition root of chainfleet-server: opens the stores, creates everything of the lower floors, and shuts it
// down in order.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/reread.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/metrics/certificate_expiry.h"
#include "core/metrics/metrics.h"
#include "core/store/blob_store/encrypted_blob_store.h"
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
#include "server/http/http_server.h"
#include "server/intake/dataset_roots.h"
#include "server/intake/upload_limits.h"
#include "server/predict/serving/batcher.h"
#include "server/rpc/grpc_server.h"
#include "server/rpc/held_reply.h"
#include "server/rpc/identity_tokens.h"
#include "server/scale/scale_loop.h"
#include "server/telemetry/control_metrics.h"
#include "server/telemetry/predict_metrics.h"

namespace chainfleet {

// Workers as Slurm jobs, submitted when chains wait.
struct SlurmOptions {
  ScaleSettings scale;
  std::string script;                    // given to sbatch
  std::string address;                   // where workers find the coordinators; empty: this coordinator
  std::vector<std::string> environment;  // variables of this process, NAME=VALUE
};

struct ServerOptions {
  std::string data_directory;
  std::string state = "sqlite";                      // "sqlite" (in the data directory) or postgresql://...
  std::shared_ptr<DatabasePassword> state_password;  // null: that of `state`, or of libpq's variables and files
  std::string advertise;                             // address at which others reach this coordinator; empty: `listen`
  std::optional<S3Settings> s3;                      // bucket of the objects; nullopt: the data directory
  std::string s3_public_endpoint;  // endpoint for workers; empty: that of `s3`; "off": objects go through the server
  Reread<ObjectKeys> draw_keys;    // if there are any, draws are encrypted at rest and go through the server
  bool renew_draws = false;        // true once, after `draw_keys` changed
  std::vector<std::string> dataset_folders;  // file:// data sets must be below these, see DatasetRoots
  std::vector<S3Settings> dataset_buckets;   // s3:// data sets must be below their prefixes
  std::string listen = "127.0.0.1:7400";
  std::string metrics_listen = "127.0.0.1:7401";  // "off": none
  Reread<std::string> metrics_token;              // bearer token that scrapes must send; empty: none
  std::string http_listen = "127.0.0.1:7402";     // "off": none
  TlsFiles metrics_tls;                           // for metrics; plaintext without a certificate
  TlsFiles tls;                                   // for gRPC and HTTP; plaintext without a certificate
  Reread<TokenTable> tokens;                      // empty: every call is allowed
  IdentityOptions identities;                     // without an issuer: only tokens of ours are taken
  std::string worker_authority;                   // folder with ca.crt and ca.key; empty: in the data directory
  TenantLimits tenant_limits{.jobs = 10'000, .chains = 65'536, .contents = 10'000, .stored_bytes = int64_t{4} << 40};
  AccessOptions access{.tenant_calls = 4096};
  ShareSettings shares;
  absl::Duration lease = limits::kLeaseTtl;
  int threads = 0;                                          // for the executor; 0: by the number of cores
  BatchLimits batches;                                      // for predictions
  absl::Duration longest_call = limits::kEvaluateDeadline;  // for calls that read draws
  std::optional<SlurmOptions> slurm;                        // nullopt: workers are started by others
  Opening opening = Opening::kUsual;
  std::string backup;           // folder of a backup, for FillObjects only
  bool objects_moved = false;   // true once, after the objects were copied to their new place
  bool collect_garbage = true;  // false: no object is deleted, so that both stores may be copied

  // Returns the folder of the authority of workers.
  std::string AuthorityFolder() const {
    return worker_authority.empty() ? data_directory + "/authority" : worker_authority;
  }
  // Returns the files whose certificates stop parts of a fleet when they expire.
  CertificateFiles Certificates() const {
    return {{"server", tls.certificate}, {"client_ca", tls.authorities}, {"metrics", metrics_tls.certificate}};
  }
};

// WaitToLead for --state postgresql://..., with metrics that show a standby. Also ALREADY_EXISTS / PORT_TAKEN;
// FAILED_PRECONDITION / OTHER_STORE: the objects of this database are elsewhere.
absl::StatusOr<std::optional<Lead>> WaitToLead(const ServerOptions& options,
                                               const std::function<bool(absl::Duration)>& pause);

class Server {
 public:
  // FAILED_PRECONDITION / IN_USE: another server uses the data directory. ALREADY_EXISTS / PORT_TAKEN. DATA_LOSS,
  // FAILED_PRECONDITION / SCHEMA_TOO_NEW, NO_CONDITIONAL_PUT or OTHER_STORE, UNAVAILABLE, RESOURCE_EXHAUSTED from the
  // stores. `on_store_lost` runs once, when the process must end and reload the store. `lead` comes from WaitToLead if
  // options.state is PostgreSQL.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options, std::optional<Lead> lead,
                                                       std::function<void(const absl::Status&)> on_store_lost);

  // Fill the stores of `options`, which no server uses. First the objects from options.backup: until the state is
  // there, the store is empty, and both may be repeated. FillState takes the state that FillObjects or
  // AccessService.Restore left in the data directory, and removes its file last. FAILED_PRECONDITION / NOT_EMPTY.
  // ALREADY_EXISTS / NOT_EMPTY: PostgreSQL has a backup that no server has opened. DATA_LOSS: the backup is damaged.
  static absl::Status FillObjects(const ServerOptions& options);
  static absl::Status FillState(const ServerOptions& options);
  // Fences off what was done after the backup and looks for every object, without serving. Errors of Start.
  static absl::Status Restore(const ServerOptions& options, std::optional<Lead> lead,
                              std::function<void(const absl::Status&)> on_store_lost);

  // Ends the RPCs within `deadline`, then everything below them.
  ~Server();

  int port() const { return grpc_->port(); }
  Coordinator& coordinator() { return *coordinator_; }
  const std::string& metrics_address() const { return metrics_address_; }
  int http_port() const { return http_ == nullptr ? 0 : http_->port(); }  // 0: none
  void Shutdown(absl::Duration deadline);

 private:
  Server() = default;
  static absl::StatusOr<std::unique_ptr<Server>> Open(const ServerOptions& options, std::optional<Lead> lead,
                                                      const std::function<void(const absl::Status&)>& on_store_lost);
  absl::Status OpenStores(const ServerOptions& options);
  absl::Status OpenSqlite(const ServerOptions& options);
  absl::Status LockFolder(absl::Duration patience);
  absl::Status OpenBlobs(const ServerOptions& options);
  void AddDatasetRoots(const ServerOptions& options);
  absl::Status RenewDraws();
  void SignUploads(const ServerOptions& options);
  absl::Status CheckRestored(const std::function<void(const absl::Status&)>& on_store_lost);
  void MakeThreads(const ServerOptions& options);
  void MakeTraceTable();
  absl::Status MakeAuthenticator(const ServerOptions& options);
  // Takes the tokens of the issuer, if there is one. Errors only of a file with its keys: an issuer that does not
  // answer is asked again.
  absl::Status TrustIssuer(const IdentityOptions& options);
  absl::Status Compose(const ServerOptions& options, std::function<void(const absl::Status&)> on_store_lost);
  // Goes on with the traces of these jobs.
  absl::Status RestoreTraces(const std::vector<std::string>& jobs);
  // Collects garbage, expires draws and reads corrupt draws again, in the background.
  absl::Status StartUpkeep(const ServerOptions& options);
  absl::Status ServeHttp(const ServerOptions& options);
  absl::Status ServeMetrics(const ServerOptions& options);
  absl::Status StartScaling(const SlurmOptions& options, const std::string& listen);
  std::vector<GaugeFamily> ShowFleet();

  // Destroyed from last to first: RPCs, then the executor's threads with their due tasks, then the objects that these
  // use.
  SystemClock clock_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<StateStore> state_;
  // Destroyed right before the store, after everything that writes. A standby leads as soon as the lead is given up; a
  // write after that would fail like a lost store.
  std::unique_ptr<LeadKeeper> lead_;
  std::unique_ptr<ThreadPool> lead_thread_;
  std::unique_ptr<HttpTransport> s3_transport_;
  std::unique_ptr<EncryptedBlobStore> blobs_;
  std::unique_ptr<BlobStore> backup_copies_;
  std::unique_ptr<S3Client> s3_public_;  // signs requests, sends none
  DatasetRoots dataset_roots_;
  const FairBudget upload_budget_{limits::kMaxUploadsBytes};
  const FairBudget object_budget_{limits::kMaxObjectUploadsBytes};
  const ByteBudget reply_budget_{kMaxHeldReplyBytes};
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<WorkerAdmission> admission_;
  std::unique_ptr<IdentityTokens> identities_;
  std::unique_ptr<Authenticator> auth_;
  MetricsRegistry registry_{"server"};
  ServerMetrics metrics_{&registry_};
  ControlMetrics control_metrics_{&registry_};
  PredictMetrics predict_metrics_{&registry_};
  InferenceStatistics statistics_;
  std::string data_directory_, metrics_address_;
  CertificateFiles certificates_;
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
  std::unique_ptr<BoundedExecutor> store_calls_;  // the last tasks of `threads_` use it and the members below
  std::unique_ptr<DatasetReads> dataset_reads_;
  std::unique_ptr<ObjectChecks> object_checks_;
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<GarbageCollector> garbage_;
  std::unique_ptr<DrawVerifier> verifier_;
  std::unique_ptr<RetentionKeeper> retention_;
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace chainfleet
