#include "server/server.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/environment.h"
#include "core/base/host_port.h"
#include "core/base/log.h"
#include "core/base/random_bits.h"
#include "core/base/shared_work.h"
#include "core/domain/sweep_points.h"
#include "core/metrics/certificate_expiry.h"
#include "core/store/blob_store/file_blob_store.h"
#include "core/store/blob_store/object_place.h"
#include "core/store/blob_store/s3_blob_store.h"
#include "core/store/state_store/sqlite_state_store.h"
#include "core/store/state_store/state_copy.h"
#include "server/control/backup_objects.h"
#include "server/control/restored_store.h"
#include "server/disk_reserve.h"
#include "server/http/error_reply.h"
#include "server/rpc/gateway/gateway.h"
#include "server/rpc/selection_query.h"
#include "server/scale/slurm_scaler.h"
#include "server/telemetry/fleet_gauges.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kCollectInterval = absl::Minutes(5);
constexpr absl::Duration kFinalShutdown = absl::Seconds(1);
constexpr absl::Duration kRefusing = absl::Milliseconds(300);
constexpr absl::Duration kFormerLeaderEnds = absl::Seconds(10);  // after which it releases a folder that both use
constexpr absl::Duration kKeysTimeout = absl::Seconds(5);        // for the issuer's answer
constexpr int64_t kMaxKeysBytes = 1 << 20;
constexpr char kNoPublicEndpoint[] = "off";
constexpr int kS3Calls = 32;        // at a time: they wait for the network
constexpr int kDatasetReads = 2;    // at a time: each holds a whole data set; a hung folder blocks nothing else
constexpr int kControlThreads = 4;  // for leases and commits, however long an object store blocks its callers

bool IsUrl(const std::string& place) {
  return absl::StartsWith(place, "http://") || absl::StartsWith(place, "https://");
}

DispatcherOptions OptionsOf(const ServerOptions& options, ControlObserver* observer, TraceTable* traces,
                            FinalFindings* findings, std::function<void(const absl::Status&)> on_store_lost) {
  // Sync three times a term and wait a third of a term after its end, as the defaults do (15 s, 5 s, 5 s).
  return {.lease_ttl = options.lease,
          .sync_interval = options.lease / 3,
          .lease_grace = options.lease / 3,
          .longest_call = options.longest_call,
          .id_key = RngKey{RandomBits()},
          .shares = options.shares,
          .tenant_limits = options.tenant_limits,
          .free_bytes = [s3 = options.s3.has_value(), folder = options.data_directory]() -> std::optional<int64_t> {
            const auto space = DiskSpaceOf(folder);
            return s3 || !space.ok() ? std::nullopt : std::optional(space->free_bytes);
          },
          .observer = observer,
          .traces = traces,
          .on_job_end = [findings](const JobView& job, KeepFindings keep) { findings->OnJobEnd(job, std::move(keep)); },
          .on_store_lost = std::move(on_store_lost)};
}

// Newest first.
std::vector<std::string> UnfinishedJobs(const StoredState& stored) {
  std::vector<std::string> jobs;
  for (const StoredJob& job : stored.jobs) {
    if (!job.row.finished_at) jobs.push_back(job.row.id);
  }
  return {jobs.rbegin(), jobs.rend()};
}

// Returns the defaults for a job that is gone.
TraceTable::Relation RelationOf(Dispatcher* dispatcher, const std::string& job) {
  const absl::StatusOr<JobBrief> brief = dispatcher->GetBrief(job);
  if (!brief.ok()) return {};
  const JobPlan& plan = *brief->plan;
  return {
      .superchains = NumSuperchains(plan), .is_sbc = plan.spec.kind == JobKind::kSbc, .chains = NumChains(plan.spec)};
}

// HOST:PORT for other hosts; 0.0.0.0 and [::] are replaced by the name of this host.
std::string ReachableAddress(const std::string& listen, int port) {
  const absl::StatusOr<HostPort> address = ParseHostPort(listen);
  const bool named = address.ok() && !address->is_any_host();
  return absl::StrCat(named ? address->host : HostName(), ":", port);
}

std::string FreshId(const char* kind) { return absl::StrCat(kind, absl::Hex(RandomBits())); }

absl::StatusOr<ObjectHome> HomeOf(const ServerOptions& options) {
  if (options.s3) return ObjectHome{options.s3->Url(), options.s3->Url(), options.objects_moved};
  CHAINFLEET_RETURN_IF_ERROR(CreateFoldersSynced(options.data_directory));
  const ObjectPlace place(RealFileSystem(), options.data_directory);
  CHAINFLEET_ASSIGN_OR_RETURN(std::string id, place.FolderId(FreshId("folder-")));
  return ObjectHome{std::move(id), absl::StrCat(place.folder(), " on ", HostName()), options.objects_moved};
}

std::string StateFile(const ServerOptions& options) { return options.data_directory + "/state.db"; }

// FillPostgres checks a database.
absl::Status CheckFileHoldsNothing(const ServerOptions& options) {
  const std::string file = StateFile(options);
  if (IsPostgres(options.state) || !RealFileSystem()->SizeBytes(file).ok()) return absl::OkStatus();
  return CheckHoldsNothing(file);
}

// Older releases made these readable for everybody. The folder itself may hold other files and keeps its mode.
void HideFromOthers(const std::string& folder) {
  for (const char* name : {"state.db", "state.db-wal", "state.db-shm", "blobs", "cache", "run"}) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    std::filesystem::permissions(path, std::filesystem::perms::group_all | std::filesystem::perms::others_all,
                                 std::filesystem::perm_options::remove, error);
    if (error)
      Log(LogLevel::kWarning, "data directory permissions not restricted, other users may read it",
          {{"path", path.string()}, {"error", error.message()}});
  }
}

}  // namespace

absl::StatusOr<std::optional<Lead>> WaitToLead(const ServerOptions& options,
                                               const std::function<bool(absl::Duration)>& pause) {
  MetricsRegistry registry("server");
  AddLeaderGauge(&registry).Set(0);
  // Without this page Prometheus would keep the target list of the time when this process led.
  registry.AddPage("/sd", {"application/json", [] { return HttpSdJson({}); }});
  registry.AtScrape([&options] { return std::vector{CertificateExpiry(options.Certificates())}; });
  if (options.metrics_listen != "off") {
    CHAINFLEET_RETURN_IF_ERROR(
        registry.Serve(options.metrics_listen, options.metrics_token, options.metrics_tls).status());
  }
  CHAINFLEET_ASSIGN_OR_RETURN(ObjectHome home, HomeOf(options));
  const PostgresOptions postgres{.uri = options.state,
                                 .address = options.advertise.empty() ? options.listen : options.advertise,
                                 .fresh_incarnation = FreshId("s"),
                                 .opening = options.opening,
                                 .home = std::move(home),
                                 .password = options.state_password};
  return WaitToLead(postgres, {{options.listen, options.tls}, {options.http_listen, options.tls}}, RngKey{RandomBits()},
                    pause);
}

absl::StatusOr<std::unique_ptr<Server>> Server::Open(const ServerOptions& options, std::optional<Lead> lead,
                                                     const std::function<void(const absl::Status&)>& on_store_lost) {
  std::unique_ptr<Server> server(new Server);
  if (lead) {
    server->state_ = std::move(lead->store);
    server->lead_thread_ = std::make_unique<ThreadPool>(2);
    server->lead_ = std::make_unique<LeadKeeper>(std::move(lead->leader), kLeaderTerm, &server->clock_,
                                                 server->lead_thread_.get(), on_store_lost);
  }
  CHAINFLEET_RETURN_IF_ERROR(server->OpenStores(options));
  return server;
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options, std::optional<Lead> lead,
                                                      std::function<void(const absl::Status&)> on_store_lost) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Open(options, std::move(lead), on_store_lost));
  CHAINFLEET_RETURN_IF_ERROR(server->Compose(options, std::move(on_store_lost)));
  return server;
}

absl::Status Server::Restore(const ServerOptions& options, std::optional<Lead> lead,
                             std::function<void(const absl::Status&)> on_store_lost) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Open(options, std::move(lead), on_store_lost));
  server->MakeThreads(options);
  return server->CheckRestored(on_store_lost);
}

absl::Status Server::FillObjects(const ServerOptions& options) {
  Server server;
  server.data_directory_ = options.data_directory;
  CHAINFLEET_RETURN_IF_ERROR(CreateFoldersSynced(options.data_directory));
  CHAINFLEET_RETURN_IF_ERROR(server.LockFolder(absl::ZeroDuration()));
  CHAINFLEET_RETURN_IF_ERROR(CheckFileHoldsNothing(options));
  CHAINFLEET_RETURN_IF_ERROR(server.OpenBlobs(options));
  CHAINFLEET_ASSIGN_OR_RETURN(const BackupManifest manifest, PutBackupObjects(options.backup, server.blobs_.get()));
  return MigrateCopy(absl::StrCat(options.backup, "/", manifest.state.name), RestoredState(options.data_directory));
}

absl::Status Server::FillState(const ServerOptions& options) {
  Server server;
  server.data_directory_ = options.data_directory;
  CHAINFLEET_RETURN_IF_ERROR(server.LockFolder(absl::ZeroDuration()));
  const std::string file = StateFile(options), restored = RestoredState(options.data_directory);
  FileSystem* const disk = RealFileSystem();
  if (IsPostgres(options.state)) {
    CHAINFLEET_RETURN_IF_ERROR(FillPostgres(restored, options.state, options.state_password));
    CHAINFLEET_RETURN_IF_ERROR(disk->Remove(restored));
  } else {
    CHAINFLEET_RETURN_IF_ERROR(CheckFileHoldsNothing(options));
    // A log of the former file must not be applied to the new one.
    for (const char* log : {"-wal", "-shm"}) disk->Remove(file + log).IgnoreError();
    CHAINFLEET_RETURN_IF_ERROR(disk->Rename(restored, file));
  }
  return disk->SyncFolder(options.data_directory);
}

Server::~Server() {
  http_.reset();
  if (grpc_) grpc_->Shutdown(kFinalShutdown);
  registry_.StopServing();
}

// gRPC resets calls that arrive during its shutdown, and clients in other languages read CANCELLED. So calls are
// refused as UNAVAILABLE first, long enough for every client to be between two attempts when the shutdown begins.
void Server::Shutdown(absl::Duration deadline) {
  auth_->RefuseAll();
  PauseThread(kRefusing);
  http_.reset();
  grpc_->Shutdown(deadline);
}

absl::Status Server::OpenStores(const ServerOptions& options) {
  data_directory_ = options.data_directory;
  certificates_ = options.Certificates();
  CHAINFLEET_RETURN_IF_ERROR(CreateFoldersSynced(options.data_directory));
  HideFromOthers(options.data_directory);
  CHAINFLEET_RETURN_IF_ERROR(LockFolder(lead_ ? kFormerLeaderEnds : absl::ZeroDuration()));
  CHAINFLEET_RETURN_IF_ERROR(OpenBlobs(options));
  std::error_code ignored;  // left by a former process
  for (const std::string& left :
       {BackupFolder(data_directory_), RestoreFolder(data_directory_), RestoredState(data_directory_)}) {
    std::filesystem::remove_all(left, ignored);
  }
  CHAINFLEET_ASSIGN_OR_RETURN(backup_copies_, FileBlobStore::Open(RealFileSystem(), BackupFolder(data_directory_)));
  AddDatasetRoots(options);
  if (state_ == nullptr) CHAINFLEET_RETURN_IF_ERROR(OpenSqlite(options));
  CHAINFLEET_ASSIGN_OR_RETURN(audit_, AuditLog::Open(options.data_directory + "/audit", &clock_,
                                                     {.on_failure = [this] { metrics_.CountLostAuditLine(); }}));
  return absl::OkStatus();
}

// If the disk is full, the server gives up the reserve to open the store. Later writes fail with DISK_FULL, and calls
// that need no write are answered.
absl::Status Server::OpenSqlite(const ServerOptions& options) {
  const DiskReserve reserve(options.data_directory + "/reserve");
  CHAINFLEET_ASSIGN_OR_RETURN(const ObjectHome home, HomeOf(options));
  const auto open = [&] { return OpenSqliteStateStore(StateFile(options), FreshId("s"), options.opening, home); };
  absl::StatusOr<std::unique_ptr<StateStore>> opened = open();
  if (ReasonOf(opened.status()) == "DISK_FULL") {
    reserve.Release();
    opened = open();
  }
  CHAINFLEET_RETURN_IF_ERROR(opened.status());
  state_ = *std::move(opened);
  if (!reserve.Fill()) {
    Log(LogLevel::kError, "disk full: writes are refused until there is room, reads are answered",
        {{"data", options.data_directory}});
  }
  return absl::OkStatus();
}

absl::Status Server::LockFolder(absl::Duration patience) {
  const absl::Duration end = clock_.Monotonic() + patience;
  while (true) {
    absl::StatusOr<std::unique_ptr<FileLock>> lock = FileLock::Acquire(data_directory_ + "/lock");
    if (lock.ok()) {
      lock_ = *std::move(lock);
      return absl::OkStatus();
    }
    if (ReasonOf(lock.status()) != "IN_USE" || clock_.Monotonic() >= end) {
      return Annotate(lock.status(), absl::StrCat("data directory ", data_directory_, " is in use by another server"));
    }
    PauseThread(absl::Milliseconds(100));
  }
}

absl::Status Server::CheckRestored(const std::function<void(const absl::Status&)>& on_store_lost) {
  StateWriter writer(&clock_, threads_.get(), state_.get(), on_store_lost);
  const absl::StatusOr<RestoredStore> stock = TakeStock(state_.get(), &writer, *blobs_);
  if (!stock.ok()) return Annotate(stock.status(), "--restored: start it again with the same flag");
  Log(stock->missing == 0 ? LogLevel::kInfo : LogLevel::kError,
      "the store is restored: leave --restored out from now on",
      {{"incarnation", state_->incarnation()},
       {"generation", state_->generation()},
       {"objects", stock->objects},
       {"missing", stock->missing},
       {"corrupt_segments", stock->corrupt_segments},
       {"failed_chains", stock->failed_chains},
       {"swept_chains", stock->swept_chains},
       {"garbage", stock->garbage}});
  return absl::OkStatus();
}

absl::Status Server::OpenBlobs(const ServerOptions& options) {
  const auto tenant_of = [this](const std::string& job) {
    const auto brief = coordinator_ == nullptr ? absl::NotFoundError(job) : coordinator_->dispatcher().GetBrief(job);
    return brief.ok() ? brief->tenant : "";
  };
  const ObjectPlace place(RealFileSystem(), options.data_directory);
  if (!options.objects_moved) CHAINFLEET_RETURN_IF_ERROR(place.Check(options.s3 ? options.s3->Url() : ""));
  if (!options.s3) {
    if (options.objects_moved) CHAINFLEET_RETURN_IF_ERROR(place.Keep(""));
    CHAINFLEET_ASSIGN_OR_RETURN(auto folder, FileBlobStore::Open(RealFileSystem(), place.folder()));
    blobs_ = std::make_unique<EncryptedBlobStore>(std::move(folder), options.draw_keys, tenant_of);
    return absl::OkStatus();
  }
  s3_transport_ = std::make_unique<CurlTransport>(options.s3->ca_bundle);
  auto client =
      std::make_unique<S3Client>(*options.s3, s3_transport_.get(), &clock_, RngKey{RandomBits()}, PauseThread);
  CHAINFLEET_ASSIGN_OR_RETURN(auto bucket, S3BlobStore::Open(std::move(client), {}));
  blobs_ = std::make_unique<EncryptedBlobStore>(std::move(bucket), options.draw_keys, tenant_of);
  return place.Keep(options.s3->Url());
}

// No object may be deleted meanwhile, so it runs before the garbage collector.
absl::Status Server::RenewDraws() {
  std::atomic<int64_t> looked_at = 0, renewed = 0;
  const auto renew = [&](const std::vector<std::string>& names) {
    std::vector<absl::Status> results(names.size());
    ShareWork(threads_.get(), kS3Calls, std::ssize(names), [&](int64_t i) {
      const absl::StatusOr<bool> done = blobs_->Renew(names[i]);
      results[i] = done.status();
      renewed += done.ok() && *done;
    });
    looked_at += std::ssize(names);
    Log(LogLevel::kInfo, "encrypting draws under the present keys",
        {{"objects", looked_at.load()}, {"renewed", renewed.load()}});
    absl::Status status;
    for (const absl::Status& result : results) status.Update(result);
    return status;
  };
  absl::Status done = blobs_->ListPages("", renew);
  if (done.ok()) done = findings_->Renew(&coordinator_->writer());
  return Annotate(done, "--renew-draws: start it again with the same flag");
}

void Server::AddDatasetRoots(const ServerOptions& options) {
  for (const std::string& folder : options.dataset_folders) dataset_roots_.AddFolder(folder);
  for (const S3Settings& settings : options.dataset_buckets) {
    if (s3_transport_ == nullptr) s3_transport_ = std::make_unique<CurlTransport>(settings.ca_bundle);
    dataset_roots_.AddBucket(
        std::make_unique<S3Client>(settings, s3_transport_.get(), &clock_, RngKey{RandomBits()}, PauseThread));
  }
}

void Server::SignUploads(const ServerOptions& options) {
  if (!options.s3 || options.s3_public_endpoint == kNoPublicEndpoint || !options.draw_keys.Current()->empty()) {
    return;
  }
  S3Settings settings = *options.s3;
  if (!options.s3_public_endpoint.empty()) settings.endpoint = options.s3_public_endpoint;
  s3_public_ = std::make_unique<S3Client>(settings, s3_transport_.get(), &clock_, RngKey{}, PauseThread);
  const auto sign = [this](const BlobRef& ref, absl::Duration valid_for) -> absl::StatusOr<SignedUpload> {
    CHAINFLEET_ASSIGN_OR_RETURN(S3SignedUrl put,
                                SignS3Put(*s3_public_, ref.name, ref.sha256, ref.size_bytes, valid_for));
    return SignedUpload{std::move(put.url), std::move(put.headers)};
  };
  uploads_ = std::make_unique<UploadSigner>(
      sign, ChainObjects(state_.get(), blobs_.get(), &coordinator_->writer(), coordinator_->dispatcher()), state_.get(),
      &coordinator_->writer(), &clock_, store_calls_.get());
}

void Server::MakeThreads(const ServerOptions& options) {
  // Tasks mostly wait for the disk, so use more threads than cores.
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int store_calls = options.threads > 0 ? options.threads : options.s3 ? kS3Calls : std::max(8, 2 * cores);
  const int scale_threads = options.slurm ? 1 : 0;  // its commands may take long
  // As many again for the object checks of commits, which must not wait for other calls of the object store.
  threads_ = std::make_unique<ThreadPool>(2 * store_calls + kDatasetReads + kControlThreads + scale_threads);
  store_calls_ = std::make_unique<BoundedExecutor>(threads_.get(), store_calls);
  object_checks_ = std::make_unique<ObjectChecks>(threads_.get(), store_calls);
  dataset_reads_ = std::make_unique<DatasetReads>(threads_.get(), kDatasetReads);
}

absl::Status Server::TrustIssuer(const IdentityOptions& options) {
  if (options.issuer.empty()) return absl::OkStatus();
  const auto read = [transport = std::make_shared<CurlTransport>(options.authorities)](
                        const std::string& place) -> absl::StatusOr<std::string> {
    if (!IsUrl(place)) return RealFileSystem()->ReadRange(place, 0, kMaxKeysBytes);
    CHAINFLEET_ASSIGN_OR_RETURN(HttpReply reply, transport->Send({.method = "GET",
                                                                  .url = place,
                                                                  .max_reply_bytes = kMaxKeysBytes,
                                                                  .stall_timeout = kKeysTimeout,
                                                                  .timeout = kKeysTimeout}));
    if (reply.code == 200) return std::move(reply.body);
    return absl::UnavailableError(absl::StrCat(place, " answers with HTTP status ", reply.code));
  };
  identities_ = std::make_unique<IdentityTokens>(options, read, &clock_, store_calls_.get());
  const absl::Status keys = identities_->ReadKeys();
  if (keys.ok()) return keys;
  if (!options.keys.empty() && !IsUrl(options.keys)) return Annotate(keys, "--oidc-keys");
  Log(LogLevel::kWarning, "cannot read the issuer's keys", {{"error", keys.message()}});
  return absl::OkStatus();
}

absl::Status Server::MakeAuthenticator(const ServerOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Signer authority, OpenWorkerAuthority(options.AuthorityFolder(), clock_.Wall()));
  admission_ = std::make_unique<WorkerAdmission>(std::move(authority), &clock_);
  CHAINFLEET_RETURN_IF_ERROR(TrustIssuer(options.identities));
  auth_ = std::make_unique<Authenticator>(options.tokens, &coordinator_->tokens(), admission_.get(), &clock_,
                                          identities_.get());
  auth_->WarnWithoutFleetAdmin();
  return absl::OkStatus();
}

void Server::MakeTraceTable() {
  diagnoses_ = std::make_unique<Strand>(threads_.get());
  traces_ = std::make_unique<TraceTable>(
      diagnoses_.get(),
      [this](const std::string& job, const std::vector<PointDiagnosis>& points) {
        coordinator_->dispatcher().TakeDiagnoses(job, points);
        findings_->KeepTraces(job, clock_.Monotonic(), &coordinator_->writer());
      },
      [this](const std::string& job) { return RelationOf(&coordinator_->dispatcher(), job); });
  findings_ = std::make_unique<FinalFindings>(store_calls_.get(), state_.get(), traces_.get(), blobs_->cipher());
}

absl::Status Server::RestoreTraces(const std::vector<std::string>& jobs) {
  constexpr int64_t kMostBytes = 16 * FinalFindings::kMostRunningTraceBytes;  // the table has room for about as much
  int64_t bytes = 0;
  for (const std::string& job : jobs) {
    if (bytes > kMostBytes) break;
    const auto states = coordinator_->dispatcher().GetChainStates(job);
    if (!states.ok()) continue;  // deleted and purged
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t read, findings_->RestoreTraces(job, *states, clock_.Monotonic()));
    bytes += read;
  }
  return absl::OkStatus();
}

absl::Status Server::Compose(const ServerOptions& options, std::function<void(const absl::Status&)> on_store_lost) {
  MakeThreads(options);
  if (options.opening == Opening::kRestored) CHAINFLEET_RETURN_IF_ERROR(CheckRestored(on_store_lost));
  CHAINFLEET_ASSIGN_OR_RETURN(StoredState stored, state_->Load());
  const std::vector<std::string> running = UnfinishedJobs(stored);
  MakeTraceTable();
  auto control = OptionsOf(options, &control_metrics_, traces_.get(), findings_.get(), std::move(on_store_lost));
  control.check_resume_point = [this](const std::string& tenant, const ApplyResult& granted) {
    return auth_->wants_tokens() ? admission_->CheckResumePoint(tenant, granted) : absl::OkStatus();
  };
  coordinator_ = std::make_unique<Coordinator>(&clock_, threads_.get(), state_.get(), std::move(stored), control);
  CHAINFLEET_RETURN_IF_ERROR(RestoreTraces(running));  // before an expired lease ends a job, which then stores them
  CHAINFLEET_RETURN_IF_ERROR(MakeAuthenticator(options));
  if (options.renew_draws) CHAINFLEET_RETURN_IF_ERROR(RenewDraws());
  SignUploads(options);
  garbage_ =
      std::make_unique<GarbageCollector>(store_calls_.get(), state_.get(), &coordinator_->writer(), blobs_.get());
  const ServiceParts parts{.clock = &clock_,
                           .executor = store_calls_.get(),
                           .timers = threads_.get(),
                           .state = state_.get(),
                           .blobs = blobs_.get(),
                           .backup_copies = backup_copies_.get(),
                           .garbage = garbage_.get(),
                           .writer = &coordinator_->writer(),
                           .tokens = &coordinator_->tokens(),
                           .catalog = &coordinator_->catalog(),
                           .versions = &coordinator_->versions(),
                           .dispatcher = &coordinator_->dispatcher(),
                           .events = coordinator_->events().get(),
                           .uploads = uploads_.get(),
                           .traces = traces_.get(),
                           .findings = findings_.get(),
                           .auth = auth_.get(),
                           .admission = admission_.get(),
                           .audit = audit_.get(),
                           .metrics = &metrics_,
                           .statistics = &statistics_,
                           .dataset_roots = &dataset_roots_,
                           .dataset_reads = dataset_reads_.get(),
                           .object_checks = object_checks_.get(),
                           .upload_budget = &upload_budget_,
                           .object_budget = &object_budget_,
                           .reply_budget = &reply_budget_,
                           .request_ids = RngKey{RandomBits()},
                           .longest_call = options.longest_call,
                           .access = options.access,
                           .data_directory = options.data_directory,
                           .state_address = IsPostgres(options.state) ? options.state : StateFile(options),
                           .state_password = options.state_password,
                           .started_at = clock_.Wall()};
  shards_ = std::make_unique<ShardStreams>(threads_.get(), RngKey{RandomBits()});
  catalog_ = std::make_unique<DispatcherDrawCatalog>(parts);
  queue_ = std::make_unique<ShardQueue>(&clock_, threads_.get(), shards_.get());
  router_ = std::make_unique<PredictRouter>(&clock_, threads_.get(), catalog_.get(), queue_.get(), &predict_metrics_);
  batcher_ = std::make_unique<Batcher>(&clock_, threads_.get(), router_.get(), &statistics_, options.batches,
                                       &predict_metrics_);
  evaluator_ = std::make_unique<Evaluator>(store_calls_.get(), catalog_.get(), blobs_.get(), queue_.get());
  evaluation_log_ = std::make_unique<EvaluationStore>(parts.writer, state_.get(), coordinator_->events());
  evaluations_ =
      std::make_unique<EvaluationOperations>(&clock_, store_calls_.get(), evaluator_.get(), evaluation_log_.get(),
                                             ProtoEvaluationCodec(), RngKey{RandomBits()}, options.longest_call);
  CHAINFLEET_RETURN_IF_ERROR(evaluations_->Recover());
  CHAINFLEET_RETURN_IF_ERROR(StartUpkeep(options));
  CHAINFLEET_ASSIGN_OR_RETURN(grpc_, GrpcServer::Start({options.listen, options.tls}, parts, shards_.get(),
                                                       batcher_.get(), evaluations_.get(), &metrics_));
  CHAINFLEET_RETURN_IF_ERROR(ServeHttp(options));
  if (options.slurm) CHAINFLEET_RETURN_IF_ERROR(StartScaling(*options.slurm, options.listen));
  return ServeMetrics(options);
}

absl::Status Server::StartUpkeep(const ServerOptions& options) {
  CHAINFLEET_RETURN_IF_ERROR(garbage_->Recover());
  retention_ = std::make_unique<RetentionKeeper>(&clock_, store_calls_.get(), state_.get(), coordinator_.get(),
                                                 options.longest_call, [collector = *garbage_]() mutable {
                                                   // failures are retried and logged in the next round
                                                   collector.Collect().IgnoreError();
                                                 });
  if (options.collect_garbage) {
    garbage_->Start(kCollectInterval);
    retention_->Start(limits::kUpkeepInterval);
  }
  verifier_ = std::make_unique<DrawVerifier>(store_calls_.get(), state_.get(), &coordinator_->writer(), blobs_.get());
  verifier_->Start(kCollectInterval);
  return absl::OkStatus();
}

absl::Status Server::StartScaling(const SlurmOptions& options, const std::string& listen) {
  const std::string address = options.address.empty() ? ReachableAddress(listen, port()) : options.address;
  const CommandRunner run =
      [this, environment = SlurmEnvironment(options.environment, {address, options.scale.chains_per_worker})](
          const std::vector<std::string>& argv) { return RunCommand(clock_, argv, environment); };
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> former, state_->FormerIncarnations());
  scaler_ = std::make_unique<SlurmScaler>(state_->incarnation(), former, options.script, run);
  scale_loop_ = std::make_unique<ScaleLoop>(
      options.scale, scaler_.get(), [this] { return coordinator_->dispatcher().Demand(); }, &clock_, threads_.get());
  Log(LogLevel::kInfo, "scaling workers with Slurm",
      {{"job_name", SlurmJobName(state_->incarnation())},
       {"workers_dial", address},
       {"min", options.scale.min_workers},
       {"max", options.scale.max_workers}});
  scale_loop_->Start();
  return absl::OkStatus();
}

absl::Status Server::ServeHttp(const ServerOptions& options) {
  if (options.http_listen == "off") return absl::OkStatus();
  const auto authorize = [this](const std::string& method, const std::string& authorization) {
    return auth_->Authorize(method, {{"authorization", authorization}}).status();
  };
  const auto count_refused = [this] { metrics_.CountRefusedCall(NoRoom()); };
  CHAINFLEET_ASSIGN_OR_RETURN(http_, OpenHttp({options.http_listen, options.tls}, !auth_->wants_tokens(),
                                              {.channel = grpc_->InProcessChannel(),
                                               .authorize = authorize,
                                               .clock = &clock_,
                                               .executor = threads_.get(),
                                               .bytes = FairBudget(limits::kHttpBytes, count_refused),
                                               .proxies = options.access.proxies,
                                               .audit = audit_.get()}));
  return absl::OkStatus();
}

absl::Status Server::ServeMetrics(const ServerOptions& options) {
  if (options.metrics_listen == "off") return absl::OkStatus();
  registry_.AtScrape([this] { return ShowFleet(); });
  registry_.AddPage("/sd", {"application/json",
                            [this] { return HttpSdJson(ScrapeTargets(coordinator_->dispatcher().Demand().workers)); }});
  CHAINFLEET_ASSIGN_OR_RETURN(metrics_address_,
                              registry_.Serve(options.metrics_listen, options.metrics_token, options.metrics_tls,
                                              AuditRefusedPages(audit_.get(), &clock_)));
  return absl::OkStatus();
}

std::vector<GaugeFamily> Server::ShowFleet() {
  FleetCounts counts;
  const FleetSummary fleet = coordinator_->dispatcher().Summary(static_cast<size_t>(kMostSeriesOfAKind));
  for (const JobSummary& job : fleet.jobs) {
    ++counts.jobs[job.state];
    for (const auto& [state, count] : job.chains) counts.chains[state] += count;
    counts.draws += job.num_draws;
  }
  const FleetDemand demand = coordinator_->dispatcher().Demand();
  counts.workers = static_cast<int64_t>(demand.workers.size());
  for (const WorkerView& worker : demand.workers) counts.chain_slots += worker.draining ? 0 : worker.chain_slots;
  counts.waiting_chains = demand.waiting;
  counts.oldest_wait = demand.oldest_wait;
  counts.serving_workers = static_cast<int64_t>(shards_->Workers().size());
  if (const auto corrupt = state_->CountCorrupt(); corrupt.ok()) counts.corrupt_segments = *corrupt;
  if (const auto space = DiskSpaceOf(data_directory_); space.ok()) counts.data = *space;
  metrics_.Show(counts);
  if (scale_loop_ != nullptr) {
    const ScaleCounts scale = scale_loop_->counts();
    metrics_.ShowScale({.desired = scale.desired,
                        .pending = scale.pending,
                        .running = scale.running,
                        .ending = scale.ending,
                        .errors = scale.errors,
                        .lost_jobs = scale.lost_jobs});
  }
  std::vector<GaugeFamily> families = FleetGauges(
      fleet, [this](const std::string& job) { return traces_->Of(job); }, demand.workers);
  families.push_back(CertificateExpiry(certificates_));
  return families;
}

}  // namespace chainfleet
