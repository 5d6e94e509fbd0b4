// Tests rights over the wire: workers, operators and tenants by their tokens, and the sessions of workers.
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/store/draw_codec/safetensors.h"
#include "tests/server/rpc/one_worker.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::WorkerSession Session(const std::string& worker, const std::string& incarnation) {
  v1::WorkerSession session;
  session.set_worker(worker);
  session.set_incarnation(incarnation);
  return session;
}

class IdentityTest : public OneWorker {
 protected:
  IdentityTest()
      : OneWorker({{"vision", "vision"},
                   {"speech", "speech"},
                   {"operator", "default", Role::kOperator},
                   {"speech-operator", "speech", Role::kOperator},
                   {"worker", kEveryTenant, Role::kWorker, kWork}}) {}

  // A chain of vision's, leased to worker w1 in its incarnation "life".
  Grant LeaseOfVision(const v1::JobSpec& spec = GaussianJob("walk")) {
    token_ = "vision";
    EXPECT_TRUE(CreateJob(spec).ok());
    token_ = "worker";
    return Granted([&] { return Synchronize(); });
  }
  absl::Status DeleteDataset(const std::string& token, const std::string& name = "digits") {
    token_ = token;
    v1::DeleteDatasetRequest request;
    request.set_name(name);
    return Call(*jobs_, &v1::JobService::Stub::DeleteDataset, request).status();
  }
  void PutDigitsOf(const std::string& tenant, const BlobRef& shard) {
    Dataset dataset{.name = "digits",
                    .digest = DigestHex(64, 'a'),
                    .input_shape = {1, 2, 2},
                    .num_rows = 100,
                    .targets = Classes{3},
                    .normalisation = {{0.5}, {0.25}},
                    .shards = {{0, 100, shard}},
                    .tenant = tenant};
    Waited<absl::StatusOr<std::string>> upload;
    content_.BeginUpload({shard.name}, upload.Take());
    Waited<absl::StatusOr<Dataset>> put;
    content_.Put(dataset, **upload.Get(), put.Take());
    ASSERT_TRUE(put.Get()->ok());
  }
  absl::StatusOr<std::string> Get(const std::string& object, const v1::WorkerSession& session) {
    v1::GetBlobRequest request;
    request.mutable_blob()->set_name(object);
    *request.mutable_session() = session;
    grpc::ClientContext context;
    SetDeadline(&context);
    SendToken(&context);
    return ReadAll(workers_->GetBlob(&context, request));
  }
};

TEST_F(IdentityTest, OnlyTheSessionThatHasTheLeasePutsObjectsAndCommits) {
  const Grant grant = LeaseOfVision();
  const BlobRef ref = RefOf(grant, "draws");
  EXPECT_EQ(ReasonOf(Put(grant.chain, grant.lease_epoch, ref, "draws")), "SESSION_REQUIRED");
  for (const auto& other : {Session("w1", "another life"), Session("w2", "life")}) {
    EXPECT_EQ(ReasonOf(Put(grant.chain, grant.lease_epoch, ref, "draws", other)), "LEASE_FENCED");
  }
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws", Session("w1", "life")).ok());
  ProgressCommit forged = CommitOf(grant, ref);
  forged.author.worker = "w2";
  EXPECT_EQ(ReasonOf(Commit(forged).status()), "LEASE_FENCED");
  EXPECT_TRUE(Commit(CommitOf(grant, ref)).ok());
}

TEST_F(IdentityTest, ATenantsTokenIsNoWorkersToken) {
  const Grant grant = LeaseOfVision();
  for (const char* token : {"speech", "vision", "operator"}) {
    token_ = token;
    EXPECT_EQ(ReasonOf(Synchronize().status()), "NOT_ALLOWED") << token;
    EXPECT_EQ(ReasonOf(Put(grant.chain, grant.lease_epoch, RefOf(grant, "x"), "x", Session("w1", "life"))),
              "NOT_ALLOWED");
    EXPECT_EQ(ReasonOf(Commit(CommitOf(grant, RefOf(grant, "x"))).status()), "NOT_ALLOWED");
    EXPECT_EQ(ReasonOf(Get("any", Session("w1", "life")).status()), "NOT_ALLOWED");
    grpc::ClientContext context;
    SetDeadline(&context);
    SendToken(&context);
    EXPECT_EQ(workers_->ServeShards(&context)->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  }
}

TEST_F(IdentityTest, AWorkerReadsWhatItsLeasesNeedAndNothingElse) {
  const BlobRef shard{DatasetObjectName("store", Sha256Hex("rows"), 7), 4, Sha256Hex("rows")};
  const BlobRef other{DatasetObjectName("store", Sha256Hex("other"), 7), 5, Sha256Hex("other")};
  ASSERT_TRUE(blobs_.Put(shard.name, "rows").ok());
  ASSERT_TRUE(blobs_.Put(other.name, "other").ok());
  PutDigitsOf("vision", shard);
  const Grant grant = LeaseOfVision(SoftmaxJob("softmax"));
  EXPECT_EQ(*Get(shard.name, Session("w1", "life")), "rows");
  const BlobRef draws = RefOf(grant, "draws");
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, draws, "draws", Session("w1", "life")).ok());
  EXPECT_EQ(*Get(draws.name, Session("w1", "life")), "draws") << "its own";
  EXPECT_EQ(ReasonOf(Get(other.name, Session("w1", "life")).status()), "NOT_HELD");
  for (const auto& session : {Session("w1", "another life"), Session("w2", "life")}) {
    EXPECT_EQ(ReasonOf(Get(shard.name, session).status()), "NOT_HELD");
    EXPECT_EQ(ReasonOf(Get(draws.name, session).status()), "NOT_HELD");
  }
  EXPECT_EQ(ReasonOf(Get(shard.name, {}).status()), "SESSION_REQUIRED");
}

TEST_F(IdentityTest, AStreamOfShardsIsOfAWorkerThatIsThere) {
  token_ = "worker";
  const auto opens = [&](const std::string& incarnation) {
    grpc::ClientContext context;
    SetDeadline(&context);
    SendToken(&context);
    const auto stream = workers_->ServeShards(&context);
    v1::ShardUpdate hello;
    hello.mutable_hello()->set_worker("w1");
    hello.mutable_hello()->set_incarnation(incarnation);
    hello.mutable_hello()->set_protocol_version(kProtocolVersion);
    stream->Write(hello);
    if (incarnation == "life") stream->Write(hello);  // a second hello ends a stream that was admitted
    stream->WritesDone();
    return FromGrpc(stream->Finish());
  };
  EXPECT_EQ(ReasonOf(opens("nobody")), "NOT_HELD");
  ASSERT_TRUE(Synchronize().ok());
  EXPECT_EQ(ReasonOf(opens("nobody")), "NOT_HELD") << "a worker that is there is not replaced by who knows its id";
  EXPECT_EQ(opens("life").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(IdentityTest, RefusalsForWorkersThatHoldNothingGetLinesInTheAuditLogAtASlowRate) {
  const Grant grant = LeaseOfVision();
  const size_t before = audit_->Read("").value().lines.size();
  const BlobRef draws = RefOf(grant, "draws");
  ProgressCommit stale = CommitOf(grant, draws);
  stale.author.worker = "w2";
  EXPECT_EQ(ReasonOf(Commit(stale).status()), "LEASE_FENCED");
  EXPECT_EQ(ReasonOf(Put(grant.chain, grant.lease_epoch, draws, "draws", Session("w2", "life"))), "LEASE_FENCED");
  EXPECT_EQ(ReasonOf(Get(draws.name, Session("w2", "life")).status()), "NOT_HELD");
  constexpr size_t kCalls = 200;
  for (size_t i = 0; i < kCalls; ++i) ASSERT_EQ(ReasonOf(Commit(stale).status()), "LEASE_FENCED");
  EXPECT_EQ(ReasonOf(GetJob("walk").status()), "NOT_ALLOWED") << "by a worker's token";
  std::vector<nlohmann::json> lines;
  const AuditLog::Page page = audit_->Read("").value();
  for (size_t i = before; i < page.lines.size(); ++i) lines.push_back(nlohmann::json::parse(page.lines[i]));
  ASSERT_GT(lines.size(), static_cast<size_t>(limits::kAuditLinesAtOnce));
  EXPECT_LT(lines.size(), kCalls / 2) << "one in 10 s";
  EXPECT_EQ(lines[0]["method"], "/chainfleet.v1.WorkerService/CommitProgress");
  EXPECT_EQ(lines[0]["principal"], TokenId(Sha256Hex("worker")));
  EXPECT_EQ(lines[0]["reason"], "LEASE_FENCED");
  EXPECT_EQ(lines[0]["worker"], "w2");
  EXPECT_EQ(lines[0]["job"], grant.chain.job);
  EXPECT_EQ(lines[0]["lease_epoch"], grant.lease_epoch);
  EXPECT_EQ(lines[1]["method"], "/chainfleet.v1.WorkerService/PutBlob");
  EXPECT_EQ(lines[1]["reason"], "LEASE_FENCED");
  EXPECT_EQ(lines[2]["method"], "/chainfleet.v1.WorkerService/GetBlob");
  EXPECT_EQ(lines[2]["reason"], "NOT_HELD");
  EXPECT_EQ(lines[2]["object"], draws.name);
  EXPECT_EQ(lines.back()["reason"], "NOT_ALLOWED") << "other refusals of the same token keep their lines";
}

TEST_F(IdentityTest, ATenantTakesHalfOfThePlacesOfEvaluations) {
  const std::vector<int32_t> labels(100);
  const auto* bytes = reinterpret_cast<const char*>(labels.data());
  const BlobRef shard{"store/datasets/x", 10, DigestHex(64, 'b')};
  const std::string file = WriteSafetensors({{"labels", TensorType::kInt32, {100}, bytes, 400}}, {});
  ASSERT_TRUE(blobs_.Put(shard.name, file).ok());
  PutDigitsOf("vision", shard);
  const Grant grant = LeaseOfVision(SoftmaxJob("softmax"));
  CommitFirstDraw(grant.chain, grant.lease_epoch);
  grpc::ClientContext worker;
  SetDeadline(&worker);
  SendToken(&worker);
  const auto stream = workers_->ServeShards(&worker);
  v1::ShardUpdate hello;
  hello.mutable_hello()->set_worker("w1");
  hello.mutable_hello()->set_incarnation("life");
  hello.mutable_hello()->set_protocol_version(kProtocolVersion);
  stream->Write(hello);
  while (shards_.Workers().empty()) continue;
  token_ = "vision";
  v1::EvaluateRequest request;
  request.set_job("softmax");
  request.set_dataset("digits");
  const auto start = [&] { return Call(*predictions_, &v1::PredictService::Stub::StartEvaluation, request).status(); };
  for (int i = 0; i < (limits::kRunningEvaluations + limits::kWaitingEvaluations) / 2; ++i) {
    const absl::Status started = start();
    ASSERT_TRUE(started.ok()) << started;
  }
  EXPECT_EQ(ReasonOf(start()), "TENANT_LIMIT");
  worker.TryCancel();
}

TEST_F(IdentityTest, OtherTenantsCannotDeleteADataSet) {
  const BlobRef shard{"store/datasets/x", 10, DigestHex(64, 'b')};
  PutDigitsOf("vision", shard);
  EXPECT_EQ(ReasonOf(DeleteDataset("speech")), "DATASET_NOT_FOUND");
  EXPECT_EQ(ReasonOf(DeleteDataset("speech", "vision/digits")), "DATASET_NOT_FOUND");
  v1::ShareRequest share;
  share.set_name("digits");
  share.add_tenants("speech");
  token_ = "vision";
  ASSERT_TRUE(Call(*jobs_, &v1::JobService::Stub::ShareDataset, share).ok());
  for (const char* token : {"speech", "speech-operator"}) {
    EXPECT_EQ(ReasonOf(DeleteDataset(token, "vision/digits")), "NOT_OWNER") << token;
  }
  EXPECT_TRUE(DeleteDataset("vision").ok());
  PutDigitsOf("vision", shard);
  EXPECT_EQ(ReasonOf(DeleteDataset("operator")), "DATASET_NOT_FOUND") << "the operator's tenant has none";
  EXPECT_TRUE(DeleteDataset("operator", "vision/digits").ok());
}

TEST_F(IdentityTest, OnlyAnOperatorDrainsWorkers) {
  token_ = "worker";
  ASSERT_TRUE(Synchronize().ok());
  v1::DrainWorkerRequest drain;
  drain.set_worker("w1");
  token_ = "vision";
  EXPECT_EQ(ReasonOf(Call(*jobs_, &v1::JobService::Stub::DrainWorker, drain).status()), "NOT_ALLOWED");
  token_ = "operator";
  EXPECT_TRUE(Call(*jobs_, &v1::JobService::Stub::DrainWorker, drain).ok());
}

// The method that decides is the call's own, whatever its client says.
TEST_F(IdentityTest, AClientCannotNameAnotherMethod) {
  grpc::ClientContext context;
  SetDeadline(&context);
  context.AddMetadata("authorization", "Bearer vision");
  context.AddMetadata(kMethodHeader, "/chainfleet.v1.JobService/GetJob");
  v1::DrainWorkerRequest drain;
  v1::Worker drained;
  EXPECT_EQ(jobs_->DrainWorker(&context, drain, &drained).error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

class CallQuotaTest : public RunningServer {
 protected:
  CallQuotaTest() : RunningServer(GivenTokens{{"vision", "vision"}, {"speech", "speech"}}, true, 1) {}
};

// One tenant's calls leave room for another's, and count until they end.
TEST_F(CallQuotaTest, BoundsTheCallsThatATenantHasInFlight) {
  token_ = "vision";
  ASSERT_TRUE(CreateJob(GaussianJob("walk")).ok());
  v1::WatchJobRequest watch;
  watch.set_name("walk");
  std::optional<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientReader<v1::Job>> watching;
  v1::Job job;
  bool watches = false;
  for (int i = 0; i < 1000 && !watches; ++i) {  // a call counts until the server is done with it
    watching.reset();
    context.emplace();
    SetDeadline(&*context);
    SendToken(&*context);
    watching = jobs_->WatchJob(&*context, watch);
    watches = watching->Read(&job);
    if (!watches) watching->Finish().IgnoreError();
  }
  ASSERT_TRUE(watches);
  const absl::Status refused = GetJob("walk").status();
  EXPECT_EQ(ReasonOf(refused), "TENANT_LIMIT");
  EXPECT_EQ(BoundOf(refused), "tenant_calls");
  EXPECT_EQ(RetryAfterOf(refused), absl::Seconds(1));
  EXPECT_THAT(Scrape(registry_.Serve("127.0.0.1:0").value()),
              testing::HasSubstr(R"(chainfleet_refused_calls_total{bound="tenant_calls",reason="TENANT_LIMIT"} )"));
  token_ = "speech";
  EXPECT_TRUE(absl::IsNotFound(GetJob("walk").status()));
  token_ = "vision";
  context->TryCancel();
  EXPECT_FALSE(watching->Finish().ok());
  absl::Status again = absl::UnknownError("not asked");
  for (int i = 0; i < 1000 && !again.ok(); ++i)
    again = GetJob("walk").status();  // the server hears of the end in its time
  EXPECT_TRUE(again.ok()) << again;
}

class OwnCallQuotaTest : public RunningServer {
 protected:
  OwnCallQuotaTest()
      : RunningServer(GivenTokens{{"vision", "vision"}, {"speech", "speech"}}, true, {4096, {{"vision", 0}}}) {}
};

TEST_F(OwnCallQuotaTest, ATenantMayHaveABoundOfItsOwn) {
  token_ = "vision";
  EXPECT_EQ(BoundOf(GetJob("walk").status()), "tenant_calls");
  token_ = "speech";
  EXPECT_TRUE(absl::IsNotFound(GetJob("walk").status()));
}

class ChangesQuotaTest : public RunningServer {
 protected:
  explicit ChangesQuotaTest(GivenTokens tokens = {{"vision", "vision"}})
      : RunningServer(std::move(tokens), true, 4096, {}, /*changes_at_once=*/0) {}
};

TEST_F(ChangesQuotaTest, AChangeBeyondTheRateOfTheAuditLogIsRefused) {
  token_ = "vision";
  const absl::Status refused = CreateJob(GaussianJob("walk")).status();
  EXPECT_EQ(ReasonOf(refused), "TENANT_LIMIT");
  EXPECT_EQ(BoundOf(refused), "caller_changes");
  EXPECT_EQ(RetryAfterOf(refused), absl::Seconds(1));
  EXPECT_TRUE(absl::IsNotFound(GetJob("walk").status())) << "reading is no change, and nothing was changed";
}

class ChangesWithoutTokens : public ChangesQuotaTest {
 protected:
  ChangesWithoutTokens() : ChangesQuotaTest(GivenTokens{}) {}
};

TEST_F(ChangesWithoutTokens, AreLeftOutOfTheAuditLogInsteadOfRefused) {
  EXPECT_TRUE(CreateJob(GaussianJob("walk")).ok());
  EXPECT_TRUE(audit_->Read("")->lines.empty());
}

using WithoutTokens = OneWorker;

TEST_F(WithoutTokens, EverythingStaysOpen) {
  const Grant grant = Lease();
  EXPECT_TRUE(Put(grant.chain, grant.lease_epoch, RefOf(grant, "draws"), "draws").ok()) << "an older worker's";
}

TEST_F(WithoutTokens, TheFieldsOfAWorkerAreBoundedAndPrintable) {
  const auto said = [&](const auto& change) {
    v1::SynchronizeRequest request;
    request.set_protocol_version(kProtocolVersion);
    request.set_worker("gpu-7.example.org-cuda:0");
    request.set_incarnation("life");
    request.set_host("gpu-7.example.org");
    request.set_metrics_address("[::1]:7410");
    request.set_seq(++seq_);
    request.add_devices()->set_name("cuda:0");
    change(&request);
    const absl::Status status = Call(*workers_, &v1::WorkerService::Stub::Synchronize, request).status();
    const auto violations = FieldViolationsOf(status);
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\x1b")));
    return violations.empty() ? std::string(status.message()) : violations[0].path;
  };
  EXPECT_EQ(said([](auto*) {}), "");
  EXPECT_EQ(said([](auto* request) { request->set_worker("\x1b[2Jw1"); }), "worker");
  EXPECT_EQ(said([](auto* request) { request->set_host(std::string(9 << 20, 'h')); }), "host");
  EXPECT_EQ(said([](auto* request) { request->mutable_devices(0)->set_name("cpu\n"); }), "devices.name");
  for (const char* address : {"no-port", "host:0", "host:70000", "http://host:80", "host:80/path", ":80", "a b:80"}) {
    EXPECT_EQ(said([&](auto* request) { request->set_metrics_address(address); }), "metrics_address") << address;
  }
  const auto hold_many = [](auto* request) {
    while (request->chains_size() < 20'000) request->add_chains();
  };
  EXPECT_EQ(said(hold_many), "chains");
}

}  // namespace
}  // namespace chainfleet
