#include "tests/server/rpc/running_server.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

DispatcherOptions Options(FinalFindings* findings, const TenantLimits& tenant_limits) {
  DispatcherOptions options;
  options.sync_interval = absl::Milliseconds(200);  // idle Synchronize calls are held so long
  options.id_key = RngKey{1};
  options.tenant_limits = tenant_limits;
  options.on_job_end = [findings](const JobView& job, KeepFindings keep) { findings->OnJobEnd(job, std::move(keep)); };
  return options;
}

// A folder that no other test uses.
std::string FreshFolder() {
  std::string folder = ::testing::TempDir() + "/chainfleet-server-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder " + folder);
  return folder;
}

}  // namespace

RunningServer::RunningServer(GivenTokens tokens, bool allow_modules, const PerTenant<int64_t>& tenant_calls,
                             const TenantLimits& tenant_limits, int64_t changes_at_once)
    : coordinator_(&clock_, threads_.get(), state_.get(), state_->Load().value(), Options(&findings_, tenant_limits)),
      folder_(FreshFolder()),
      admission_(OpenWorkerAuthority(folder_ + "/authority", clock_.Wall()).value(), &clock_),
      auth_(TableOf(tokens), &coordinator_.tokens(), &admission_, &clock_),
      garbage_(threads_.get(), state_.get(), &coordinator_.writer(), &blobs_),
      audit_(AuditLog::Open(folder_ + "/audit", &clock_, {}).value()),
      backup_copies_(FileBlobStore::Open(RealFileSystem(), BackupFolder(folder_)).value()),
      parts_{.clock = &clock_,
             .executor = threads_.get(),
             .timers = threads_.get(),
             .state = state_.get(),
             .blobs = &blobs_,
             .backup_copies = backup_copies_.get(),
             .garbage = &garbage_,
             .writer = &coordinator_.writer(),
             .tokens = &coordinator_.tokens(),
             .catalog = &content_,
             .versions = &versions_,
             .dispatcher = &dispatcher_,
             .events = coordinator_.events().get(),
             .traces = &traces_,
             .findings = &findings_,
             .auth = &auth_,
             .admission = &admission_,
             .audit = audit_.get(),
             .metrics = &metrics_,
             .statistics = &statistics_,
             .dataset_roots = &dataset_roots_,
             .dataset_reads = &dataset_reads_,
             .object_checks = &object_checks_,
             .upload_budget = &upload_budget_,
             .object_budget = &object_budget_,
             .reply_budget = &reply_budget_,
             .access = {allow_modules, tenant_calls, changes_at_once},
             .data_directory = folder_,
             .state_address = database_.path(),
             .started_at = clock_.Wall()} {
  auto started = StartOn("127.0.0.1:0");
  if (!started.ok()) throw std::runtime_error(started.status().ToString());
  server_ = *std::move(started);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limits::kMaxMessageBytes));  // as the product's client
  channel_ = grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments);
  jobs_ = v1::JobService::NewStub(channel_);
  workers_ = v1::WorkerService::NewStub(channel_);
  predictions_ = v1::PredictService::NewStub(channel_);
}

RunningServer::~RunningServer() {
  server_->Shutdown(absl::Seconds(1));
  server_.reset();
  threads_.reset();  // its last tasks use what is destroyed after it
  std::filesystem::remove_all(folder_);
}

absl::StatusOr<std::unique_ptr<GrpcServer>> RunningServer::StartOn(const std::string& address) {
  return GrpcServer::Start({address}, parts_, &shards_, &batcher_, &evaluations_, &metrics_);
}

void RunningServer::SetDeadline(grpc::ClientContext* context, double seconds) {
  const auto after = static_cast<int64_t>(seconds * 1e6);
  context->set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(after, GPR_TIMESPAN)));
}

Grant RunningServer::Granted(const std::function<absl::StatusOr<SynchronizeReply>()>& synchronize) {
  for (int i = 0; i < 50; ++i) {
    const absl::StatusOr<SynchronizeReply> reply = synchronize();
    if (!reply.ok()) throw std::runtime_error(reply.status().ToString());
    if (reply->grants.empty()) continue;
    // The next reply repeats the grant, and has those of the same decision that were committed too late for this one.
    return synchronize()->grants.front();
  }
  throw std::runtime_error("no grant");
}

void RunningServer::PutDigits(const std::string& tenant, const std::string& name) {
  Dataset dataset;
  dataset.tenant = tenant;
  dataset.name = name;
  dataset.digest = DigestHex(64, 'a');
  dataset.input_shape = {1, 2, 2};
  dataset.num_rows = 100;
  dataset.targets = Classes{3};
  dataset.normalisation = {{0.5}, {0.25}};
  dataset.shards = {{0, 100, {"store/datasets/" + ContentKey(tenant, "x"), 10, DigestHex(64, 'b')}}};
  Waited<absl::StatusOr<std::string>> upload;
  content_.BeginUpload({dataset.shards[0].object.name}, upload.Take());
  Waited<absl::StatusOr<Dataset>> put;
  content_.Put(dataset, **upload.Get(), put.Take());
  ASSERT_TRUE(put.Get()->ok());
}

void RunningServer::CommitADraw(std::optional<ChainState> ends_as) {
  SynchronizeRequest request;
  request.worker = "w1";
  request.incarnation = "life";
  request.devices = {{"cpu", int64_t{1} << 30, 4}};
  const Grant grant = Granted([&] {
    ++request.seq;
    Waited<absl::StatusOr<SynchronizeReply>> reply;
    dispatcher_.Synchronize(request, reply.Take());
    return *reply.Get();
  });
  CommitFirstDraw(grant.chain, grant.lease_epoch, ends_as);
}

void RunningServer::CommitFirstDraw(const ChainId& chain, int64_t lease_epoch, std::optional<ChainState> ends_as) {
  ProgressCommit commit{.author = {.worker = "w1"}, .incarnation = "life"};
  commit.chain = chain;
  commit.lease_epoch = lease_epoch;
  commit.resume_point = {10, "state", std::nullopt, Sha256Hex("state")};
  commit.segment = Segment{.first_index = 0,
                           .steps = {10},
                           .weights = {1},
                           .kinds = {DrawKind::kTheta},
                           .object = {SegmentObjectName("store", chain, lease_epoch, DigestHex(64, 'e')),
                                      std::ssize(kDrawBytes), Sha256Hex(kDrawBytes)},
                           .digest = DigestHex(64, 'e'),
                           .parent_digest = FirstParentDigest()};
  commit.ends_as = ends_as;
  Waited<absl::StatusOr<CommitReply>> committed;
  dispatcher_.CommitProgress(commit, committed.Take());
  const auto done = committed.Get();
  ASSERT_TRUE(done && done->ok()) << done->status();
}

absl::StatusOr<v1::Job> RunningServer::CreateJob(const v1::JobSpec& spec, const std::string& request_id) {
  v1::CreateJobRequest request;
  *request.mutable_spec() = spec;
  request.set_request_id(request_id);
  return Call(*jobs_, &v1::JobService::Stub::CreateJob, request);
}

absl::StatusOr<v1::Job> RunningServer::GetJob(const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  return Call(*jobs_, &v1::JobService::Stub::GetJob, request);
}

absl::StatusOr<v1::Job> RunningServer::SetIntent(const std::string& name, v1::Job::Intent intent) {
  v1::SetIntentRequest request;
  request.set_name(name);
  request.set_intent(intent);
  return Call(*jobs_, &v1::JobService::Stub::SetIntent, request);
}

absl::StatusOr<std::string> RunningServer::ReadAll(std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader) {
  std::string bytes;
  v1::Chunk chunk;
  while (reader->Read(&chunk)) bytes += chunk.data();
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return FromGrpc(status);
  return bytes;
}

v1::JobSpec GaussianJob(const std::string& name, int chains) {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.mutable_model()->mutable_potential()->mutable_gaussian()->set_dimension(2);
  spec.mutable_sampler()->mutable_sgld();
  spec.mutable_step_size()->set_constant(0.1);
  spec.set_batch_size(1);
  spec.set_num_steps(100);
  spec.set_chains(chains);
  return spec;
}

v1::JobSpec SoftmaxJob(const std::string& name, int chains) {
  v1::JobSpec spec = GaussianJob(name, chains);
  spec.mutable_model()->set_builtin("softmax_regression");
  spec.mutable_dataset()->set_name("digits");
  return spec;
}

}  // namespace chainfleet
