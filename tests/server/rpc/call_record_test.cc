#include "server/rpc/call_record.h"

#include <spdlog/spdlog.h>

#include <deque>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/store/draw_codec/sha256.h"
#include "inference/grpc_service.grpc.pb.h"
#include "server/rpc/audit_rate.h"
#include "server/rpc/request_id.h"
#include "tests/server/rpc/running_server.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";

class CallRecordTest : public RunningServer {
 protected:
  CallRecordTest() : RunningServer({{"secret-token", "default", Role::kWriter, kWork}}) {}
  ~CallRecordTest() override { spdlog::set_default_logger(before_); }

  struct Answer {
    grpc::Status status;
    std::vector<std::string> first, last;  // ids in the initial and the trailing metadata
  };
  Answer Create(const std::string& name, const std::vector<std::pair<std::string, std::string>>& metadata) {
    grpc::ClientContext context;
    SetDeadline(&context);
    context.AddMetadata("authorization", "Bearer secret-token");
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    v1::CreateJobRequest request;
    *request.mutable_spec() = GaussianJob(name);
    v1::Job job;
    const grpc::Status status = jobs_->CreateJob(&context, request, &job);
    return {status, Ids(context.GetServerInitialMetadata()), Ids(context.GetServerTrailingMetadata())};
  }
  static std::vector<std::string> Ids(const CallMetadata& metadata) {
    std::vector<std::string> ids;
    const auto [begin, end] = metadata.equal_range(kRequestIdHeader);
    for (auto it = begin; it != end; ++it) ids.emplace_back(it->second.data(), it->second.size());
    return ids;
  }

  // Runs `calls` and ends the server; returns the lines logged at `level`.
  template <typename Calls>
  std::vector<nlohmann::json> Lines(const std::string& level, Calls calls) {
    testing::internal::CaptureStderr();
    InitLog(testing::UnitTest::GetInstance()->current_test_info()->name(), level);
    calls();
    server_->Shutdown(absl::Seconds(1));
    text_ = testing::internal::GetCapturedStderr();
    std::vector<nlohmann::json> lines;
    std::istringstream text(text_);
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  std::string text_;

 private:
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(CallRecordTest, ReturnsTheTraceIdToTheClient) {
  const Answer answer = Create("a", {{"traceparent", std::string("00-") + kTrace + "-00f067aa0ba902b7-01"}});
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(answer.first, ElementsAre(kTrace));
  EXPECT_THAT(answer.last, ElementsAre(kTrace));
}

TEST_F(CallRecordTest, MakesAnIdForCallsWithoutOne) {
  const Answer one = Create("a", {}), other = Create("b", {{"x-request-id", "not an id"}});
  for (const Answer& answer : {one, other}) EXPECT_THAT(answer.last, ElementsAre(MatchesRegex("[0-9a-f]{32}")));
  EXPECT_NE(one.last, other.last);
}

TEST_F(CallRecordTest, PutsTheIdIntoEveryError) {
  EXPECT_EQ(RequestIdOf(FromGrpc(Create("Not A Name", {{"x-request-id", "mine-1"}}).status)), "mine-1");
  EXPECT_THAT(RequestIdOf(GetJob("nobody").status()), MatchesRegex("[0-9a-f]{32}"));
}

TEST_F(CallRecordTest, LogsChangesAndFailuresWithoutTokens) {
  const std::vector<nlohmann::json> lines = Lines("info", [&] {
    Create("a", {{"x-request-id", "mine-1"}});
    grpc::ClientContext context;
    SetDeadline(&context);
    context.AddMetadata("authorization", "Bearer secret-token");
    v1::ListJobsResponse jobs;
    EXPECT_TRUE(jobs_->ListJobs(&context, {}, &jobs).ok());
    EXPECT_FALSE(GetJob("nobody").ok());  // without a token
  });
  ASSERT_EQ(lines.size(), 3u) << text_;
  EXPECT_EQ(lines[0]["message"], "job submitted");
  EXPECT_EQ(lines[1]["request"], "mine-1");
  EXPECT_EQ(lines[1]["method"], "/chainfleet.v1.JobService/CreateJob");
  EXPECT_EQ(lines[1]["code"], "OK");
  EXPECT_THAT(lines[1]["job"].get<std::string>(), testing::StartsWith("a-"));
  EXPECT_GE(lines[1]["duration_ms"].get<double>(), 0);
  EXPECT_EQ(lines[2]["message"], "token refused");
  EXPECT_EQ(lines[2]["level"], "warning");
  EXPECT_EQ(lines[2]["peer"], "ipv4:127.0.0.1");
  EXPECT_THAT(text_, Not(HasSubstr("secret-token")));
}

TEST_F(CallRecordTest, LogsEveryCallAtDebugLevelWithItsIds) {
  const std::vector<nlohmann::json> lines = Lines("debug", [&] {
    grpc::ClientContext context;
    SetDeadline(&context);
    context.AddMetadata("authorization", "Bearer secret-token");
    v1::CommitProgressRequest request;
    request.set_worker("w-1");
    request.mutable_chain()->set_job("toy-aaaaaa");
    request.mutable_chain()->set_index(3);
    request.set_lease_epoch(7);
    v1::CommitProgressReply reply;
    EXPECT_FALSE(workers_->CommitProgress(&context, request, &reply).ok());
    grpc::ClientContext list;
    SetDeadline(&list);
    list.AddMetadata("authorization", "Bearer secret-token");
    v1::ListJobsResponse jobs;
    EXPECT_TRUE(jobs_->ListJobs(&list, {}, &jobs).ok());
  });
  ASSERT_EQ(lines.size(), 2u) << text_;
  EXPECT_EQ(lines[0]["job"], "toy-aaaaaa");
  EXPECT_EQ(lines[0]["chain"], 3);
  EXPECT_EQ(lines[0]["lease_epoch"], 7);
  EXPECT_EQ(lines[0]["worker"], "w-1");
  EXPECT_FALSE(lines[0]["error"].get<std::string>().empty());
  EXPECT_EQ(lines[1]["level"], "debug");
}

TEST(AuditRate, LeavesOutWhatACallerRepeatsAndSaysHowMuch) {
  AuditRate rate;
  const Principal a{.id = "a"};
  absl::Duration now;
  for (int i = 0; i < limits::kAuditLinesAtOnce; ++i) EXPECT_EQ(rate.Take(a, now), 0);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(rate.Take(a, now), std::nullopt);
  EXPECT_EQ(rate.Take({.id = "b"}, now), 0) << "others have their own";
  now += absl::Seconds(1);
  EXPECT_EQ(rate.Take(a, now), 7);
  EXPECT_EQ(rate.Take(a, now), std::nullopt);
  now += absl::Hours(1);
  EXPECT_EQ(rate.Take(a, now), 1);
  for (int i = 1; i < limits::kAuditLinesAtOnce; ++i) EXPECT_EQ(rate.Take(a, now), 0);
  EXPECT_EQ(rate.Take(a, now), std::nullopt) << "an hour gives no more than that";
}

TEST(AuditRate, ASubjectOfAnIssuerLeavesRoomForTheOthers) {
  AuditRate rate;
  absl::Duration now;
  const auto lines = [&](const std::string& subject, const std::string& tenant) {
    int taken = 0;
    for (int i = 0; i < 1000; ++i) taken += rate.Take({.id = subject, .tenant = tenant}, now).has_value();
    return taken;
  };
  EXPECT_EQ(lines("oidc:a", ""), 6);
  EXPECT_EQ(rate.Take({.id = "oidc:b", .tenant = ""}, now), 994);
  for (int i = 0; i < 100; ++i) lines(absl::StrCat("oidc:", i), "");
  EXPECT_EQ(lines("oidc:c", ""), 0) << "all subjects together get no more than one token";
  EXPECT_EQ(lines("oidc:c", "vision"), 6) << "strangers take nothing from those whom a rule matches";
  now += absl::Seconds(10);
  EXPECT_EQ(lines("oidc:a", ""), 1);
}

TEST(AuditRate, KnowsABoundedNumberOfCallers) {
  AuditRate rate;
  absl::Duration now;
  for (int i = 0; i < 4200; ++i) rate.Take({.id = absl::StrCat("oidc:", i), .tenant = absl::StrCat(i)}, now);
  EXPECT_EQ(rate.Take({.id = "late"}, now), std::nullopt) << "it shares one rate with those that did not fit";
  now += absl::Seconds(1);
  EXPECT_EQ(rate.Take({.id = "later"}, now), 0) << "those who may take all lines again were forgotten";
  EXPECT_EQ(rate.Take({}, now), 4201 - 4096 - limits::kAuditLinesAtOnce);
}

TEST_F(CallRecordTest, ChangesAndRefusalsGetALineInTheAuditLog) {
  Create("a", {{"x-request-id", "mine-1"}});
  token_ = "secret-token";
  EXPECT_TRUE(Call(*jobs_, &v1::JobService::Stub::ListJobs, v1::ListJobsRequest()).ok());
  v1::SetIntentRequest request;
  request.set_name("a");
  request.set_intent(v1::Job::CANCEL);
  EXPECT_TRUE(Call(*jobs_, &v1::JobService::Stub::SetIntent, request).ok());
  request.set_name("nobody");
  EXPECT_FALSE(Call(*jobs_, &v1::JobService::Stub::SetIntent, request).ok());
  v1::DrainWorkerRequest drain;
  drain.set_worker("w-1");
  EXPECT_FALSE(Call(*jobs_, &v1::JobService::Stub::DrainWorker, drain).ok());
  token_.clear();
  EXPECT_FALSE(GetJob("a").ok());
  server_->Shutdown(absl::Seconds(1));
  std::vector<nlohmann::json> lines;
  const AuditLog::Page page = audit_->Read("").value();
  for (const std::string& line : page.lines) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0]["method"], "/chainfleet.v1.JobService/CreateJob");
  EXPECT_EQ(lines[0]["request"], "mine-1");
  EXPECT_EQ(lines[0]["principal"], Sha256Hex("secret-token").substr(0, 12));
  EXPECT_EQ(lines[0]["tenant"], "default");
  EXPECT_THAT(lines[0]["peer"].get<std::string>(), testing::StartsWith("ipv4:127.0.0.1:"));
  EXPECT_THAT(lines[0]["job"].get<std::string>(), testing::StartsWith("a-"));
  EXPECT_EQ(lines[1]["intent"], "CANCEL");
  EXPECT_EQ(lines[1]["code"], "OK");
  EXPECT_EQ(lines[2]["job"], "nobody");
  EXPECT_EQ(lines[2]["reason"], "JOB_NOT_FOUND");
  EXPECT_EQ(lines[3]["reason"], "NOT_ALLOWED");
  EXPECT_EQ(lines[4]["code"], "UNAUTHENTICATED");
  EXPECT_EQ(lines[4]["peer"], "ipv4:127.0.0.1");
}

class RefusedReadsTest : public RunningServer {
 protected:
  RefusedReadsTest()
      : RunningServer({{"reads", "vision", Role::kReader}, {"reads-too", "vision", Role::kReader}}, true,
                      /*tenant_calls=*/int64_t{0}) {}
};

TEST_F(RefusedReadsTest, GetLinesInTheAuditLogAtOneRateForTheTenant) {
  constexpr size_t kCalls = 200;
  for (size_t i = 0; i < kCalls; ++i) {
    token_ = i % 2 == 0 ? "reads" : "reads-too";
    ASSERT_EQ(ReasonOf(GetJob("walk").status()), "TENANT_LIMIT");
  }
  const std::vector<std::string> lines = audit_->Read("").value().lines;
  ASSERT_GE(lines.size(), static_cast<size_t>(limits::kAuditLinesAtOnce));
  EXPECT_LT(lines.size(), kCalls / 2) << "one in 10 s";
  const nlohmann::json line = nlohmann::json::parse(lines.front());
  EXPECT_EQ(line["principal"], TokenId(Sha256Hex("reads")));
  EXPECT_EQ(line["tenant"], "vision");
  EXPECT_EQ(line["method"], "/chainfleet.v1.JobService/GetJob");
  EXPECT_EQ(line["code"], "RESOURCE_EXHAUSTED");
  EXPECT_EQ(line["reason"], "TENANT_LIMIT");
}

class FullServerTest : public RunningServer {
 protected:
  FullServerTest() : RunningServer({{"a", "a"}, {"b", "b"}, {"c", "c"}}) {}
};

TEST_F(FullServerTest, ItsRefusalsGetNoLineInTheAuditLog) {
  const auto models = inference::GRPCInferenceService::NewStub(channel_);
  std::deque<grpc::ClientContext> contexts;
  const auto open = [&](const std::string& token) {
    token_ = token;
    SetDeadline(&contexts.emplace_back());
    SendToken(&contexts.back());
    return models->ModelStreamInfer(&contexts.back());
  };
  std::vector<decltype(open(""))> streams;
  inference::ModelInferRequest request;
  request.set_model_name("nowhere");
  inference::ModelStreamInferResponse response;
  for (size_t i = 0; i < limits::kInferenceStreams; ++i) {
    streams.push_back(open(i % 2 == 0 ? "a" : "b"));
    ASSERT_TRUE(streams.back()->Write(request) && streams.back()->Read(&response));
  }
  const auto refused = open("c");
  EXPECT_FALSE(refused->Read(&response));
  EXPECT_EQ(ReasonOf(FromGrpc(refused->Finish())), "QUEUE_FULL");
  for (grpc::ClientContext& context : contexts) context.TryCancel();
  EXPECT_THAT(audit_->Read("").value().lines, testing::IsEmpty());
}

// gRPC cancels such a call on the server like one whose client has disconnected.
TEST_F(CallRecordTest, CountsADeadlineThatPassesAsThat) {
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer secret-token");
  SetDeadline(&context, 0.05);  // the server would hold it for longer
  v1::SynchronizeRequest request;
  request.set_protocol_version(kProtocolVersion);
  request.set_worker("w-1");
  request.set_incarnation("life");
  request.set_seq(1);
  v1::SynchronizeReply reply;
  EXPECT_EQ(workers_->Synchronize(&context, request, &reply).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  server_->Shutdown(absl::Seconds(1));
  const auto metrics = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_THAT(Scrape(*metrics),
              HasSubstr("chainfleet_grpc_handled_total{code=\"DEADLINE_EXCEEDED\",method=\"/chainfleet.v1."
                        "WorkerService/Synchronize\"} 1\n"));
}

}  // namespace
}  // namespace chainfleet
