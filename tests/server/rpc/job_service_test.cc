#include <grpcpp/generic/generic_stub.h>

#include <map>
#include <string>
#include <utility>

#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/server/rpc/contract_methods.h"
#include "tests/server/rpc/running_server.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class JobServiceTest : public RunningServer {
 protected:
  absl::StatusOr<v1::ListJobsResponse> List(int32_t page_size, const std::string& token,
                                            const std::string& state = "") {
    v1::ListJobsRequest request;
    request.set_page_size(page_size);
    request.set_page_token(token);
    request.set_state(state);
    return Call(*jobs_, &v1::JobService::Stub::ListJobs, request);
  }

  // Commits `count` segments of the only waiting chain, each of `draws` draws.
  void CommitSegments(int segments, int64_t draws) {
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
    DigestHex parent = grant.progress.last_digest;
    for (int64_t i = 0; i < segments; ++i) {
      Segment segment{.first_index = i * draws, .kinds = {DrawKind::kTheta}, .digest = DigestHex(64, 'a' + i % 6)};
      for (int64_t step = 1; step <= draws; ++step) segment.steps.push_back(i * draws + step);
      segment.weights.assign(static_cast<size_t>(draws), 1);
      segment.object = {SegmentObjectName("store", grant.chain, grant.lease_epoch, segment.digest), 10,
                        DigestHex(64, 'd')};
      segment.parent_digest = std::exchange(parent, segment.digest);
      ProgressCommit commit{
          .author = {.worker = "w1"}, .incarnation = "life", .chain = grant.chain, .lease_epoch = grant.lease_epoch};
      commit.resume_point = {(i + 1) * draws, "state", std::nullopt, Sha256Hex("state")};
      commit.segment = std::move(segment);
      Waited<absl::StatusOr<CommitReply>> committed;
      dispatcher_.CommitProgress(commit, committed.Take());
      const auto done = committed.Get();
      ASSERT_TRUE(done && done->ok()) << done->status();
    }
  }
};

TEST_F(JobServiceTest, FindsAJobByIdByNameAndAsTheLatest) {
  const auto created = CreateJob(GaussianJob("walk", 2));
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_THAT(created->id(), testing::StartsWith("walk-"));
  EXPECT_EQ(created->state(), v1::Job::PENDING);
  for (const std::string& name : {created->id(), std::string("walk"), std::string("@latest")}) {
    const auto job = GetJob(name);
    ASSERT_TRUE(job.ok()) << name << ": " << job.status();
    EXPECT_EQ(job->id(), created->id());
    EXPECT_EQ(job->chains_size(), 2);
  }
}

TEST_F(JobServiceTest, ReportsWhichPosteriorIsSampled) {
  v1::JobSpec spec = GaussianJob("walk");
  spec.set_temperature(0.5);
  spec.mutable_collect()->set_every_steps(10);
  const auto job = CreateJob(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->report().num_examples(), 1);
  EXPECT_EQ(job->report().temperature(), 0.5);
  EXPECT_EQ(job->report().step_size(), 0.1);
  EXPECT_EQ(job->report().num_parameters(), 2);
  EXPECT_EQ(job->report().draws_per_chain(), 10);
  EXPECT_EQ(job->steps_total(), 100);
}

TEST_F(JobServiceTest, ReportsThePosteriorOfEachPointOfASweep) {
  v1::JobSpec spec = GaussianJob("walk", 2);
  for (const double temperature : {0.5, 2.0}) spec.mutable_sweep()->add_temperature(temperature);
  for (const double step_size : {0.1, 0.2, 0.3}) spec.mutable_sweep()->add_step_size(step_size);
  const auto job = CreateJob(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->num_chains(), 12);
  ASSERT_EQ(job->chains_size(), 12);
  ASSERT_EQ(job->points_size(), 6);
  EXPECT_EQ(job->points(4).name(), "step_size=0.3,temperature=0.5");
  EXPECT_EQ(job->points(4).report().step_size(), 0.3);
  EXPECT_EQ(job->points(4).report().temperature(), 0.5);
  EXPECT_EQ(job->chains(9).point(), 4);
  EXPECT_EQ(job->steps_total(), 1200);
  EXPECT_EQ(job->report().num_parameters(), 2);
  EXPECT_EQ(job->report().temperature(), 0) << "the points do not share it";
}

TEST_F(JobServiceTest, ReturnsTheSameJobForTheSameRequestId) {
  const auto first = CreateJob(GaussianJob("walk"), "request-1"), again = CreateJob(GaussianJob("walk"), "request-1");
  ASSERT_TRUE(first.ok() && again.ok()) << first.status() << again.status();
  EXPECT_EQ(first->id(), again->id());
  EXPECT_EQ(List(10, "")->jobs_size(), 1);
}

TEST_F(JobServiceTest, StoresNothingWhenAskedToValidateOnly) {
  v1::CreateJobRequest request;
  *request.mutable_spec() = GaussianJob("walk");
  request.set_validate_only(true);
  const auto job = Call(*jobs_, &v1::JobService::Stub::CreateJob, request);
  EXPECT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(List(10, "")->jobs_size(), 0);
}

TEST_F(JobServiceTest, NamesEveryWrongFieldInTheStandardDetails) {
  v1::CreateJobRequest request;
  *request.mutable_spec() = GaussianJob("walk");
  request.mutable_spec()->clear_sampler();
  request.mutable_spec()->set_minibatches("sometimes");
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::Job job;
  const grpc::Status status = jobs_->CreateJob(&context, request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad_request;
  google::rpc::RequestInfo request_info;
  ASSERT_EQ(details.details_size(), 3);
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  ASSERT_TRUE(details.details(1).UnpackTo(&bad_request));
  ASSERT_TRUE(details.details(2).UnpackTo(&request_info));
  EXPECT_FALSE(request_info.request_id().empty());
  EXPECT_EQ(info.domain(), "chainfleet");
  ASSERT_EQ(bad_request.field_violations_size(), 2);
  EXPECT_EQ(bad_request.field_violations(0).field(), "sampler");
  EXPECT_EQ(bad_request.field_violations(1).field(), "minibatches");
}

TEST_F(JobServiceTest, RefusesWhatTheDomainRefuses) {
  v1::JobSpec spec = GaussianJob("walk");
  spec.mutable_step_size()->set_constant(-1);
  EXPECT_EQ(FieldViolationsOf(CreateJob(spec).status()).at(0).path, "step_size.constant");
  spec = GaussianJob("walk");
  spec.mutable_model()->set_builtin("mlp");
  spec.mutable_dataset()->set_name("nowhere");
  const auto job = CreateJob(spec);
  EXPECT_FALSE(job.ok());
  EXPECT_THAT(std::string(job.status().message()), HasSubstr("nowhere"));
}

TEST_F(JobServiceTest, NamesAnUnknownJob) {
  const auto job = GetJob("nobody");
  EXPECT_EQ(job.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(job.status().message()), HasSubstr("nobody"));
}

TEST_F(JobServiceTest, ListsPageByPageNewestFirst) {
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(CreateJob(GaussianJob(name)).ok());
  const auto first = List(2, "");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->jobs_size(), 2);
  EXPECT_EQ(first->jobs(0).spec().name(), "c");
  EXPECT_EQ(first->jobs(0).chains_size(), 0);
  const auto second = List(2, first->next_page_token());
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_EQ(second->jobs_size(), 1);
  EXPECT_EQ(second->jobs(0).spec().name(), "a");
  EXPECT_EQ(second->next_page_token(), "");
  EXPECT_EQ(List(2, first->next_page_token(), "RUNNING").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(List(2, "nonsense").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(JobServiceTest, ListsByState) {
  ASSERT_TRUE(CreateJob(GaussianJob("a")).ok());
  ASSERT_TRUE(CreateJob(GaussianJob("b")).ok());
  ASSERT_TRUE(SetIntent("a", v1::Job::CANCEL).ok());
  const auto cancelled = List(10, "", "CANCELLED");
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  ASSERT_EQ(cancelled->jobs_size(), 1);
  EXPECT_EQ(cancelled->jobs(0).spec().name(), "a");
  EXPECT_EQ(List(10, "", "DONE").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(JobServiceTest, RefusesAnIntentThatIsMissingOrLoosens) {
  ASSERT_TRUE(CreateJob(GaussianJob("a")).ok());
  EXPECT_EQ(SetIntent("a", v1::Job::INTENT_UNSPECIFIED).status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(SetIntent("a", v1::Job::CANCEL).ok());
  EXPECT_EQ(SetIntent("a", v1::Job::RUN).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(SetIntent("a", v1::Job::CANCEL).ok()) << "the same intent again is no change";
}

TEST_F(JobServiceTest, AddsChainsToAJob) {
  ASSERT_TRUE(CreateJob(GaussianJob("a", 2)).ok());
  v1::ScaleJobRequest request;
  request.set_name("a");
  request.set_chains(3);
  const auto scaled = Call(*jobs_, &v1::JobService::Stub::ScaleJob, request);
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  EXPECT_EQ(scaled->num_chains(), 3);
  EXPECT_EQ(scaled->chains_size(), 3);
  EXPECT_EQ(scaled->spec().chains(), 3);
  request.set_chains(2);
  EXPECT_EQ(Call(*jobs_, &v1::JobService::Stub::ScaleJob, request).status().code(),
            absl::StatusCode::kFailedPrecondition);
  request.set_chains(0);
  EXPECT_EQ(FieldViolationsOf(Call(*jobs_, &v1::JobService::Stub::ScaleJob, request).status()).at(0).path, "chains");
}

TEST_F(JobServiceTest, ReportsStoppedPointsWithTheReason) {
  v1::JobSpec spec = GaussianJob("a", 2);
  spec.mutable_until()->set_max_draws(1);
  ASSERT_TRUE(CreateJob(spec).ok());
  CommitADraw();
  auto job = GetJob("a");
  for (int i = 0; i < 1000 && job.ok() && job->stopped_size() == 0; ++i) job = GetJob("a");  // behind the commit
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ(job->stopped_size(), 1);
  EXPECT_EQ(job->stopped(0).point(), 0);
  EXPECT_EQ(job->stopped(0).why(), "max_draws 1 is reached: 1 committed");
  EXPECT_EQ(job->spec().until().max_draws(), 1);
}

TEST_F(JobServiceTest, WatchSendsTheJobAtOnceThenChangesAndEndsWithIt) {
  ASSERT_TRUE(CreateJob(GaussianJob("a")).ok());
  v1::WatchJobRequest request;
  request.set_name("a");
  request.set_min_interval_seconds(0.05);
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto reader = jobs_->WatchJob(&context, request);
  v1::Job job;
  ASSERT_TRUE(reader->Read(&job));
  EXPECT_EQ(job.state(), v1::Job::PENDING);
  ASSERT_TRUE(SetIntent("a", v1::Job::CANCEL).ok());
  while (reader->Read(&job)) {
  }
  EXPECT_EQ(job.state(), v1::Job::CANCELLED);
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(JobServiceTest, WatchReportsConvergence) {
  const auto created = CreateJob(GaussianJob("a", 2));
  ASSERT_TRUE(created.ok());
  for (int32_t chain = 0; chain < 2; ++chain) {
    ChainTrace trace{.point = 0, .quantities = {"energy"}, .steps = {}, .values = {}};
    for (int64_t step = 1; step <= 200; ++step) {
      trace.steps.push_back(step);
      trace.values.push_back(static_cast<double>((step * 7919 + chain * 104729) % 1009));
    }
    traces_.Add({created->id(), chain}, trace, std::nullopt, {});
  }
  WaitForDiagnostics();
  const std::vector<Diagnostic> known = traces_.Of(created->id());
  ASSERT_EQ(known.size(), 1u);
  v1::WatchJobRequest request;
  request.set_name("a");
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto reader = jobs_->WatchJob(&context, request);
  v1::Job job;
  ASSERT_TRUE(reader->Read(&job));
  context.TryCancel();
  reader->Finish();
  ASSERT_EQ(job.diagnostics_size(), 1);
  const v1::Job::Diagnostic& said = job.diagnostics(0);
  EXPECT_EQ(said.quantity(), "energy");
  EXPECT_EQ(said.chains(), 2);
  EXPECT_EQ(said.values(), 200);
  EXPECT_EQ(said.rhat(), known[0].rhat);
  EXPECT_EQ(said.ess_bulk(), known[0].ess_bulk);
  EXPECT_EQ(said.ess_tail(), known[0].ess_tail);
  EXPECT_EQ(said.mean(), known[0].mean);
  EXPECT_EQ(said.mcse_mean(), known[0].mcse_mean);
  EXPECT_GT(said.rhat(), 0.9);
  EXPECT_GT(said.ess_bulk(), 1);
  EXPECT_GT(said.ess_tail(), 1);
  EXPECT_GT(said.mcse_mean(), 0);
}

TEST_F(JobServiceTest, TheLastMessageOfAWatchHasTheDiagnosticsOfTheLastCommits) {
  const auto created = CreateJob(GaussianJob("a"));
  std::shared_ptr<void> expected = traces_.Expect(created->id());
  ASSERT_TRUE(SetIntent("a", v1::Job::CANCEL).ok());
  v1::WatchJobRequest request;
  request.set_name("a");
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto reader = jobs_->WatchJob(&context, request);
  traces_.Add({created->id(), 0}, {.point = 0, .quantities = {"energy"}, .steps = {1, 2, 3, 4}, .values = {1, 2, 4, 3}},
              ChainState::kSucceeded, {});
  expected.reset();
  v1::Job job;
  while (reader->Read(&job)) {
  }
  EXPECT_EQ(job.state(), v1::Job::CANCELLED);
  EXPECT_EQ(job.diagnostics_size(), 1);
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(JobServiceTest, WatchOfAnUnknownJobIsRefused) {
  v1::WatchJobRequest request;
  request.set_name("nobody");
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::Job job;
  const auto reader = jobs_->WatchJob(&context, request);
  EXPECT_FALSE(reader->Read(&job));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(JobServiceTest, ReportsServerInfo) {
  const auto info = Call(*jobs_, &v1::JobService::Stub::GetServerInfo, v1::GetServerInfoRequest());
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->store_incarnation(), "store");
  EXPECT_EQ(info->protocol_version(), kProtocolVersion);
  EXPECT_EQ(info->data_directory(), folder_);
  EXPECT_EQ(info->caller().principal(), "");
  EXPECT_EQ(info->caller().tenant(), kDefaultTenant);
  EXPECT_EQ(info->caller().role(), v1::ADMIN);
  for (const v1::TenantLimit& limit : info->caller().limits()) EXPECT_NE(limit.name(), "calls") << "nobody counts them";
}

class CallerTest : public RunningServer {
 protected:
  CallerTest()
      : RunningServer({{"admin", "default", Role::kAdmin}, {"user", "vision"}, {"shop", "vision", Role::kPredictor}},
                      true, 4096, {.jobs = {10, {{"vision", 5}}}}) {}

  // Returns the limits of the holder's tenant by name.
  std::map<std::string, v1::TenantLimit> LimitsWith(const std::string& token) {
    token_ = token;
    const auto info = Call(*jobs_, &v1::JobService::Stub::GetServerInfo, v1::GetServerInfoRequest());
    std::map<std::string, v1::TenantLimit> limits;
    for (const v1::TenantLimit& limit : info.value().caller().limits()) limits[limit.name()] = limit;
    return limits;
  }
};

TEST_F(CallerTest, SeesTheUsageOfItsOwnTenantAndOfNoOther) {
  token_ = "user";
  ASSERT_TRUE(CreateJob(GaussianJob("walk", 3)).ok());
  auto own = LimitsWith("user"), admins = LimitsWith("admin");
  EXPECT_EQ(own["jobs"].used(), 1);
  EXPECT_EQ(own["jobs"].limit(), 5);
  EXPECT_EQ(own["chains"].used(), 3);
  EXPECT_EQ(own["kept_chains"].used(), 3);
  EXPECT_FALSE(own["chains"].has_limit());
  EXPECT_GE(own["calls"].used(), 1) << "this one";
  EXPECT_EQ(own["calls"].limit(), 4096);
  EXPECT_FALSE(own["rows_per_second"].has_used());
  EXPECT_EQ(admins["jobs"].limit(), 10);
  for (const char* name : {"jobs", "chains", "kept_chains", "contents", "stored_bytes"}) {
    EXPECT_TRUE(admins[name].has_used()) << name;
    EXPECT_EQ(admins[name].used(), 0) << name << ": an admin of the fleet sees its own tenant";
  }
}

TEST_F(CallerTest, APredictorSeesOnlyTheLimitsOfItsCalls) {
  EXPECT_THAT(LimitsWith("shop"), testing::ElementsAre(testing::Key("calls"), testing::Key("rows_per_second")));
}

class TokenTest : public RunningServer {
 protected:
  TokenTest() : RunningServer(GivenTokens{{"secret", "default"}, {"other", "vision"}}) {}
  grpc::StatusCode CodeWith(const std::string& authorization) {
    grpc::ClientContext context;
    SetDeadline(&context);
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
    v1::ServerInfo info;
    return jobs_->GetServerInfo(&context, v1::GetServerInfoRequest(), &info).error_code();
  }
  static grpc::ClientContext* Authorized(grpc::ClientContext* context, const std::string& token) {
    SetDeadline(context);
    context->AddMetadata("authorization", "Bearer " + token);
    return context;
  }
};

TEST_F(TokenTest, WantsTheTokenOnEveryCall) {
  EXPECT_EQ(CodeWith(""), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(CodeWith("Bearer Secret"), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(CodeWith("secret"), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(CodeWith("Bearer secret"), grpc::StatusCode::OK);
}

// Returns the code of a call with an empty request.
grpc::StatusCode EmptyCall(grpc::GenericStub* stub, grpc::ClientContext* context, const std::string& method) {
  grpc::CompletionQueue queue;
  void* tag;
  bool ok;
  const auto call = stub->PrepareCall(context, method, &queue);
  call->StartCall(nullptr);
  EXPECT_TRUE(queue.Next(&tag, &ok));
  const grpc::Slice nothing;
  call->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), nullptr);
  EXPECT_TRUE(queue.Next(&tag, &ok));
  grpc::Status status;
  call->Finish(&status, nullptr);
  EXPECT_TRUE(queue.Next(&tag, &ok));
  return status.error_code();
}

TEST_F(TokenTest, EveryMethodOfEveryServiceRefusesAnotherToken) {
  grpc::GenericStub stub(channel_);
  const auto methods = ContractMethods();
  EXPECT_GT(methods.size(), 50u);
  for (const auto* method : methods) {
    grpc::ClientContext context;
    EXPECT_EQ(EmptyCall(&stub, Authorized(&context, "guessed"), GrpcPath(*method)), grpc::StatusCode::UNAUTHENTICATED)
        << method->full_name();
  }
}

TEST_F(TokenTest, TheJobsOfOtherTenantsAreNotFound) {
  v1::CreateJobRequest create;
  *create.mutable_spec() = GaussianJob("walk");
  create.set_request_id("r1");
  v1::Job mine, theirs;
  grpc::ClientContext c1, c2;
  ASSERT_TRUE(jobs_->CreateJob(Authorized(&c1, "secret"), create, &mine).ok());
  ASSERT_TRUE(jobs_->CreateJob(Authorized(&c2, "other"), create, &theirs).ok());
  EXPECT_NE(mine.id(), theirs.id());
  EXPECT_EQ(mine.tenant(), "default");
  EXPECT_EQ(theirs.tenant(), "vision");

  grpc::ClientContext list, by_name;
  v1::ListJobsResponse listed;
  ASSERT_TRUE(jobs_->ListJobs(Authorized(&list, "other"), v1::ListJobsRequest(), &listed).ok());
  ASSERT_EQ(listed.jobs_size(), 1);
  EXPECT_EQ(listed.jobs(0).id(), theirs.id());
  v1::GetJobRequest get;
  get.set_name("walk");
  v1::Job found;
  ASSERT_TRUE(jobs_->GetJob(Authorized(&by_name, "other"), get, &found).ok());
  EXPECT_EQ(found.id(), theirs.id());

  grpc::ClientContext gets, intends, scales, watches, events, segments, reads, predicts, evaluates;
  get.set_name(mine.id());
  const grpc::Status not_found = jobs_->GetJob(Authorized(&gets, "other"), get, &found);
  EXPECT_EQ(not_found.error_code(), grpc::StatusCode::NOT_FOUND);
  v1::ListEventsRequest list_events;
  list_events.set_job(mine.id());
  v1::ListEventsResponse listed_events;
  const grpc::Status no_events = jobs_->ListEvents(Authorized(&events, "other"), list_events, &listed_events);
  EXPECT_EQ(no_events.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(no_events.error_message(), not_found.error_message());
  v1::SetIntentRequest intend;
  intend.set_name(mine.id());
  intend.set_intent(v1::Job::CANCEL);
  EXPECT_EQ(jobs_->SetIntent(Authorized(&intends, "other"), intend, &found).error_code(), grpc::StatusCode::NOT_FOUND);
  v1::ScaleJobRequest scale;
  scale.set_name(mine.id());
  scale.set_chains(5);
  EXPECT_EQ(jobs_->ScaleJob(Authorized(&scales, "other"), scale, &found).error_code(), grpc::StatusCode::NOT_FOUND);
  v1::WatchJobRequest watch;
  watch.set_name(mine.id());
  EXPECT_EQ(jobs_->WatchJob(Authorized(&watches, "other"), watch)->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  v1::ListSegmentsRequest draws;
  draws.set_job(mine.id());
  v1::ListSegmentsResponse page;
  EXPECT_EQ(jobs_->ListSegments(Authorized(&segments, "other"), draws, &page).error_code(),
            grpc::StatusCode::NOT_FOUND);
  v1::ReadSegmentRequest read;
  read.set_job(mine.id());
  EXPECT_EQ(jobs_->ReadSegment(Authorized(&reads, "other"), read)->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  v1::PredictRequest predict;
  predict.set_job(mine.id());
  v1::PredictResponse prediction;
  EXPECT_EQ(predictions_->Predict(Authorized(&predicts, "other"), predict, &prediction).error_code(),
            grpc::StatusCode::NOT_FOUND);
  v1::EvaluateRequest evaluate;
  evaluate.set_job(mine.id());
  EXPECT_EQ(predictions_->Evaluate(Authorized(&evaluates, "other"), evaluate)->Finish().error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(TokenTest, TheEvaluationsOfOtherTenantsAreNotFound) {
  v1::CreateJobRequest create;
  *create.mutable_spec() = GaussianJob("walk");
  v1::Job mine;
  grpc::ClientContext creates;
  ASSERT_TRUE(jobs_->CreateJob(Authorized(&creates, "secret"), create, &mine).ok());
  EvaluationRow row;
  row.id = "eval-mine";
  row.job = mine.id();
  row.tenant = kDefaultTenant;
  Waited<absl::StatusOr<EvaluationLog::Stored>> stored;
  evaluation_log_.Create(row, stored.Take());
  ASSERT_TRUE(stored.Get()->ok());
  grpc::ClientContext own, others, cancels, lists;
  v1::GetEvaluationRequest named;
  named.set_id("eval-mine");
  v1::EvaluationOperation operation;
  EXPECT_EQ(predictions_->GetEvaluation(Authorized(&others, "other"), named, &operation).error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(predictions_->CancelEvaluation(Authorized(&cancels, "other"), named, &operation).error_code(),
            grpc::StatusCode::NOT_FOUND);
  v1::ListEvaluationsResponse listed;
  ASSERT_TRUE(predictions_->ListEvaluations(Authorized(&lists, "other"), {}, &listed).ok());
  EXPECT_EQ(listed.evaluations_size(), 0);
  ASSERT_TRUE(predictions_->GetEvaluation(Authorized(&own, "secret"), named, &operation).ok());
  EXPECT_EQ(operation.state(), v1::EvaluationOperation::RUNNING) << "not cancelled by the other";
}

TEST_F(TokenTest, WantsItOnStreamsOfEveryServiceToo) {
  grpc::ClientContext watch, put, shards, evaluate;
  for (auto* context : {&watch, &put, &shards, &evaluate}) SetDeadline(context);
  EXPECT_EQ(jobs_->WatchJob(&watch, v1::WatchJobRequest())->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  v1::PutBlobReply reply;
  EXPECT_EQ(workers_->PutBlob(&put, &reply)->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(workers_->ServeShards(&shards)->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(predictions_->Evaluate(&evaluate, v1::EvaluateRequest())->Finish().error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(JobServiceTest, AListOfLargeJobsComesInPagesThatAMessageCarries) {
  v1::JobSpec spec = GaussianJob("large");
  constexpr int kDimension = GaussianPotential::kMaxCovarianceDimension, kJobs = 9;
  auto* gaussian = spec.mutable_model()->mutable_potential()->mutable_gaussian();
  gaussian->Clear();
  gaussian->set_dimension(kDimension);
  for (int i = 0; i < kDimension * kDimension; ++i) gaussian->add_covariance(i % (kDimension + 1) == 0 ? 1 : 0);
  for (int i = 0; i < kJobs; ++i) {
    spec.set_name("large" + std::to_string(i));
    const auto created = CreateJob(spec);
    ASSERT_TRUE(created.ok()) << created.status();
  }
  int listed = 0;
  std::string token;
  do {
    const auto page = List(1000, token);
    ASSERT_TRUE(page.ok()) << page.status();
    listed += page->jobs_size();
    token = page->next_page_token();
  } while (!token.empty());
  EXPECT_EQ(listed, kJobs);
}

TEST_F(JobServiceTest, SegmentsOfManySmallDrawsComeInPagesThatAMessageCarries) {
  constexpr int kSegments = 28;
  constexpr int64_t kDraws = limits::kMaxSegmentDraws;  // more than 20 MB of steps and weights in all
  v1::JobSpec spec = GaussianJob("walk");
  spec.set_num_steps(kSegments * kDraws);
  const auto job = CreateJob(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  CommitSegments(kSegments, kDraws);
  v1::ListSegmentsRequest request;
  request.set_job(job->id());
  request.set_page_size(1000);
  int64_t draws = 0;
  do {
    const auto page = Call(*jobs_, &v1::JobService::Stub::ListSegments, request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::SegmentRecord& segment : page->segments()) draws += segment.segment().steps_size();
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(draws, kSegments * kDraws);
}

}  // namespace
}  // namespace chainfleet
