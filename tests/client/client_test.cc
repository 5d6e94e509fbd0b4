#include "client/lib/client.h"

#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/lib/draw_reader.h"
#include "core/store/draw_codec/sha256.h"
#include "core/wire/grpc_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"
#include "tests/support/loopback_server.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// Returns the test's answers, after `unavailable` refusals.
class FakeJobService final : public v1::JobService::Service {
 public:
  grpc::Status CreateJob(grpc::ServerContext* context, const v1::CreateJobRequest* request, v1::Job* reply) override {
    request_ids.push_back(request->request_id());
    const auto call = context->client_metadata().find(kRequestIdHeader);
    if (call != context->client_metadata().end()) call_ids.emplace_back(call->second.data(), call->second.size());
    if (unavailable-- > 0) return ToGrpc(WithReason(absl::UnavailableError("another coordinator leads"), "NOT_LEADER"));
    if (reset-- > 0) return grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED");
    reply->set_id("toy-abcdef");
    return WithRequestId(ToGrpc(refusal), RequestIdOf(refusal));
  }

  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest*, v1::ServerInfo*) override {
    return CheckToken(*context);
  }

  grpc::Status DeleteModel(grpc::ServerContext*, const v1::DeleteModelRequest*, v1::DeleteModelResponse*) override {
    if (unavailable-- > 0) return ToGrpc(WithReason(absl::UnavailableError("no database"), "STORE_UNREACHABLE"));
    return ToGrpc(WithReason(absl::NotFoundError("there is no such model"), "MODEL_NOT_FOUND"));
  }
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* reply) override {
    reply->add_jobs()->set_id("job" + request->page_token());
    if (request->page_token().size() < 2) reply->set_next_page_token(request->page_token() + "+");
    return grpc::Status::OK;
  }

  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::Job>* writer) override {
    if (const grpc::Status known = CheckToken(*context); !known.ok()) return known;
    watched.push_back(request->name());
    if (watch_states.empty()) return ToGrpc(absl::UnavailableError("going down"));
    v1::Job job;
    job.set_id("toy-abcdef");
    job.set_state(watch_states.front());
    watch_states.erase(watch_states.begin());
    writer->Write(job);
    if (IsFinal(job.state())) return grpc::Status::OK;
    if (!tokens_expire) return ToGrpc(absl::UnavailableError("going down"));
    expired.insert(authorization);
    return CheckToken(*context);
  }

  grpc::Status ReadSegment(grpc::ServerContext*, const v1::ReadSegmentRequest* request,
                           grpc::ServerWriter<v1::Chunk>* writer) override {
    v1::Chunk chunk;
    for (const char c : objects[request->object()]) {
      chunk.set_data(std::string(1, c));
      writer->Write(chunk);
    }
    return grpc::Status::OK;
  }

  grpc::Status PutDataset(grpc::ServerContext*, grpc::ServerReader<v1::PutDatasetRequest>* reader,
                          v1::Dataset* reply) override {
    v1::PutDatasetRequest request;
    received.clear();
    sizes.clear();
    uris.clear();
    while (reader->Read(&request)) {
      if (request.has_header()) reply->set_name(request.header().name());
      if (request.has_header()) header = request.header();
      if (request.has_file()) {
        received.push_back({request.file().file_name(), ""});
        sizes.push_back(request.file().size_bytes());
        uris.push_back(request.file().uri());
      }
      if (request.part_case() == v1::PutDatasetRequest::kData) received.back().second += request.data();
    }
    return unavailable-- > 0 ? ToGrpc(absl::UnavailableError("")) : grpc::Status::OK;
  }

  grpc::Status CheckToken(const grpc::ServerContext& context) {
    const auto token = context.client_metadata().find("authorization");
    if (token != context.client_metadata().end()) authorization.assign(token->second.data(), token->second.size());
    return expired.contains(authorization) ? ToGrpc(absl::UnauthenticatedError("unknown token")) : grpc::Status::OK;
  }

  int unavailable = 0, reset = 0;
  bool tokens_expire = false;  // after the first message of each watch
  std::set<std::string> expired = {"Bearer expired"};
  absl::Status refusal;
  std::vector<std::string> request_ids, call_ids, watched;
  std::vector<v1::Job::State> watch_states;
  std::map<std::string, std::string> objects;
  std::vector<std::pair<std::string, std::string>> received;
  std::vector<int64_t> sizes;
  std::vector<std::string> uris;
  v1::PutDatasetRequest::Header header;
  std::string authorization;
};

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() { options_.addresses = {server_.address()}; }

  Client MakeClient() {
    return Client(options_, &clock_, [this](absl::Duration wait) {
      sleeps_.push_back(wait);
      clock_.Advance(wait);
    });
  }

  // A record of `bytes` as the object "object".
  v1::SegmentRecord Store(const std::string& bytes) {
    service_.objects["object"] = bytes;
    v1::SegmentRecord record;
    record.mutable_chain()->set_job("toy-abcdef");
    record.mutable_segment()->mutable_object()->set_name("object");
    record.mutable_segment()->mutable_object()->set_size_bytes(static_cast<int64_t>(bytes.size()));
    record.mutable_segment()->mutable_object()->set_sha256(Sha256Hex(bytes));
    return record;
  }

  FakeJobService service_;
  LoopbackServer server_{&service_};
  FakeClock clock_;
  ClientOptions options_;
  std::vector<absl::Duration> sleeps_;
};

TEST_F(ClientTest, RepeatsACallThatIsUnavailableTwiceWithTheSameRequestId) {
  service_.unavailable = 2;
  v1::CreateJobRequest request;
  request.set_request_id("r1");
  const auto job = MakeClient().CreateJob(request);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->id(), "toy-abcdef");
  EXPECT_THAT(service_.request_ids, ElementsAre("r1", "r1", "r1"));
  ASSERT_EQ(sleeps_.size(), 2u);
  EXPECT_GT(sleeps_[1], sleeps_[0] / 2);  // doubling, each from the upper half
}

TEST_F(ClientTest, GivesEachCallAnIdThatItsAttemptsShare) {
  service_.unavailable = 1;
  Client client = MakeClient();
  ASSERT_TRUE(client.CreateJob({}).ok());
  ASSERT_TRUE(client.CreateJob({}).ok());
  ASSERT_EQ(service_.call_ids.size(), 3u);
  EXPECT_THAT(service_.call_ids[0], MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(service_.call_ids[1], service_.call_ids[0]);
  EXPECT_NE(service_.call_ids[2], service_.call_ids[0]);
}

// --help promises "Give up after this long". An earlier end would fail every call during a takeover of several seconds.
TEST_F(ClientTest, RepeatsUntilItsTimeIsOverAndKeepsTheServersReason) {
  service_.unavailable = 1000;
  options_.timeout = absl::Seconds(20);
  int told = 0;
  options_.on_outage = [&](const absl::Status& status) { told += ReasonOf(status) == "NOT_LEADER"; };
  const absl::Duration start = clock_.Monotonic();
  const auto job = MakeClient().CreateJob({});
  EXPECT_EQ(job.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(job.status()), "NOT_LEADER");
  EXPECT_GT(clock_.Monotonic() - start, absl::Seconds(18));
  EXPECT_LT(clock_.Monotonic() - start, absl::Seconds(26));
  EXPECT_EQ(told, 1);
}

TEST_F(ClientTest, OutlastsATakeover) {
  service_.unavailable = 12;
  EXPECT_TRUE(MakeClient().CreateJob({}).ok());
  absl::Duration waited;
  for (const absl::Duration sleep : sleeps_) waited += sleep;
  EXPECT_GT(waited, absl::Seconds(5));
}

// gRPC resets the calls that an ending server has not answered. A client that has not cancelled must repeat them.
TEST_F(ClientTest, RepeatsACallThatAnEndingServerReset) {
  service_.reset = 2;
  EXPECT_TRUE(MakeClient().CreateJob({}).ok());
  EXPECT_EQ(service_.request_ids.size(), 3u);
}

TEST_F(ClientTest, TreatsACancelledFromTheServerAsTheAnswer) {
  service_.refusal = WithRequestId(absl::CancelledError("the evaluation was cancelled"), "r1");
  EXPECT_EQ(MakeClient().CreateJob({}).status().code(), absl::StatusCode::kCancelled);
}

// A server whose store is down answers, so the client must not advise to start a server.
TEST_F(ClientTest, KeepsTheMessageOfAServerWhoseStoreIsDown) {
  service_.refusal = WithRequestId(absl::UnavailableError("S3 at http://store: connection refused"), "r1");
  const absl::Status status = MakeClient().CreateJob({}).status();
  EXPECT_EQ(status.message(), "S3 at http://store: connection refused");
}

TEST_F(ClientTest, DoesNotRepeatARefusalAndKeepsItsFields) {
  service_.refusal = InvalidFields({{"chains", "must be at least 1"}});
  const auto job = MakeClient().CreateJob({});
  EXPECT_THAT(FieldViolationsOf(job.status()), ElementsAre(FieldViolation{"chains", "must be at least 1"}));
  EXPECT_EQ(service_.request_ids.size(), 1u);
  EXPECT_TRUE(sleeps_.empty());
}

TEST_F(ClientTest, TriesTheNextAddress) {
  options_.addresses.insert(options_.addresses.begin(), "127.0.0.1:1");
  EXPECT_TRUE(MakeClient().GetServerInfo().ok());
  EXPECT_EQ(sleeps_.size(), 1u);
}

TEST_F(ClientTest, NamesTheAddressesThatDoNotAnswer) {
  options_.addresses = {"127.0.0.1:1"};
  const absl::Status status = MakeClient().GetServerInfo().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1:1"));
}

// The name may be wrong, and a user must not be told that it was deleted.
TEST_F(ClientTest, ReportsNoDeletionOfAThingThatARepeatedCallDoesNotFind) {
  const absl::Status first = MakeClient().DeleteModel("gone");
  EXPECT_TRUE(absl::IsNotFound(first));
  EXPECT_EQ(first.message(), "there is no such model");
  service_.unavailable = 1;  // as if the store were down
  const absl::Status repeated = MakeClient().DeleteModel("gone");
  EXPECT_TRUE(absl::IsNotFound(repeated)) << repeated;
  EXPECT_EQ(ReasonOf(repeated), "MODEL_NOT_FOUND");
  EXPECT_THAT(std::string(repeated.message()),
              AllOf(HasSubstr("earlier attempt"), HasSubstr("there is no such model")));
}

TEST_F(ClientTest, SendsItsToken) {
  options_.token = "secret";
  ASSERT_TRUE(MakeClient().GetServerInfo().ok());
  EXPECT_EQ(service_.authorization, "Bearer secret");
}

TEST_F(ClientTest, ARefusedTokenIsRenewedOnceForACallAndThenKept) {
  std::vector<std::string> refused;
  options_.token = "expired";
  options_.renew_token = [&](const std::string& token) {
    refused.push_back(token);
    return "fresh";
  };
  Client client = MakeClient();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(client.GetServerInfo().ok());
  EXPECT_EQ(service_.authorization, "Bearer fresh");
  EXPECT_THAT(refused, ElementsAre("expired"));
}

TEST_F(ClientTest, ARefusedTokenWithoutANewOneIsAnError) {
  options_.token = "expired";
  int asked = 0;
  for (const absl::StatusOr<std::string>& answer :
       {absl::StatusOr<std::string>("expired"), absl::StatusOr<std::string>(absl::NotFoundError(""))}) {
    options_.renew_token = [&](const std::string&) { return ++asked, answer; };
    EXPECT_TRUE(absl::IsUnauthenticated(MakeClient().GetServerInfo().status()));
  }
  EXPECT_EQ(asked, 2);
}

TEST_F(ClientTest, TheTimeOfACallCountsThatOfRenewingItsToken) {
  options_.token = "expired";
  options_.renew_token = [&](const std::string&) {
    clock_.Advance(options_.timeout + absl::Seconds(1));
    return "fresh";
  };
  EXPECT_TRUE(absl::IsDeadlineExceeded(MakeClient().GetServerInfo().status()));
}

TEST_F(ClientTest, AWatchOutlastsEveryTokenOfACommand) {
  service_.watch_states = {v1::Job::PENDING, v1::Job::RUNNING, v1::Job::RUNNING, v1::Job::SUCCEEDED};
  service_.tokens_expire = true;
  int renewals = 0;
  options_.token = "token-0";
  options_.renew_token = [&](const std::string&) { return absl::StrCat("token-", ++renewals); };
  const absl::Status status = MakeClient().WatchJob("toy", absl::InfiniteDuration(), [](const v1::Job&) {});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(renewals, 3);
}

TEST_F(ClientTest, AWatchOutlastsEveryTokenOfAFile) {
  service_.watch_states = {v1::Job::PENDING, v1::Job::RUNNING, v1::Job::RUNNING, v1::Job::SUCCEEDED};
  service_.tokens_expire = true;
  std::string file = "token";
  options_.token = *Reread<std::string>::Open("token", [&] { return file; });
  const absl::Status status =
      MakeClient().WatchJob("toy", absl::InfiniteDuration(), [&](const v1::Job&) { file += "+"; });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(service_.authorization, "Bearer token+++");
}

TEST_F(ClientTest, AWatchEndsWithItsTokenWhenTheFileHasNoOther) {
  for (const std::string rest : {"token", ""}) {
    service_.watch_states = {v1::Job::PENDING, v1::Job::SUCCEEDED};
    service_.tokens_expire = true;
    service_.expired.clear();
    std::string file = "token";
    options_.token = *Reread<std::string>::Open("token", [&] { return file; });
    int messages = 0;
    const absl::Status status = MakeClient().WatchJob("toy", absl::InfiniteDuration(), [&](const v1::Job&) {
      ++messages;
      file = rest;
    });
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    EXPECT_EQ(messages, 1);
    EXPECT_EQ(service_.authorization, "Bearer token") << "an empty file has no token";
  }
}

TEST_F(ClientTest, ListsAllPages) {
  const auto jobs = MakeClient().ListJobs("");
  ASSERT_TRUE(jobs.ok());
  ASSERT_EQ(jobs->size(), 3u);
  EXPECT_EQ(jobs->back().id(), "job++");
}

TEST_F(ClientTest, ResumesAWatchThatBreaksByTheIdItSaw) {
  service_.watch_states = {v1::Job::PENDING, v1::Job::RUNNING, v1::Job::SUCCEEDED};
  std::vector<v1::Job::State> seen;
  const absl::Status status =
      MakeClient().WatchJob("toy", absl::InfiniteDuration(), [&](const v1::Job& job) { seen.push_back(job.state()); });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(seen, ElementsAre(v1::Job::PENDING, v1::Job::RUNNING, v1::Job::SUCCEEDED));
  EXPECT_THAT(service_.watched, ElementsAre("toy", "toy-abcdef", "toy-abcdef"));
}

TEST_F(ClientTest, EndsAWatchThatNeverBeganWhenItsTimeIsOver) {
  const absl::Duration start = clock_.Monotonic();
  EXPECT_TRUE(absl::IsUnavailable(MakeClient().WatchJob("toy", absl::InfiniteDuration(), [](const v1::Job&) {})));
  EXPECT_GE(clock_.Monotonic() - start, options_.timeout);
  EXPECT_LT(clock_.Monotonic() - start, options_.timeout + absl::Seconds(6));
}

TEST_F(ClientTest, EndsAWatchThatWasSilentForLongerThanItsPatience) {
  service_.watch_states = {v1::Job::RUNNING};
  const absl::Duration start = clock_.Monotonic();
  EXPECT_TRUE(absl::IsUnavailable(MakeClient().WatchJob("toy", absl::InfiniteDuration(), [](const v1::Job&) {})));
  EXPECT_GE(clock_.Monotonic() - start, options_.patience);
  EXPECT_LT(clock_.Monotonic() - start, options_.patience + absl::Seconds(6));
}

TEST_F(ClientTest, ResumesAWatchThatBreaksAfterAQuietTimeLongerThanItsPatience) {
  service_.watch_states = {v1::Job::RUNNING, v1::Job::SUCCEEDED};
  const absl::Status status = MakeClient().WatchJob("toy", absl::InfiniteDuration(), [&](const v1::Job& job) {
    if (job.state() == v1::Job::RUNNING) clock_.Advance(2 * options_.patience);
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(service_.watched.size(), 2u);
}

TEST_F(ClientTest, ReportsTheStateOfTheJobWhenAWatchTimesOut) {
  service_.watch_states = {v1::Job::RUNNING};
  const absl::Status status = MakeClient().WatchJob("toy", absl::Seconds(10), [](const v1::Job&) {});
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("toy-abcdef is still RUNNING after 10s"));
}

TEST_F(ClientTest, ReadsASegmentAndChecksItsDigest) {
  v1::SegmentRecord record = Store("four");
  const auto bytes = MakeClient().ReadSegment(record);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, "four");
  service_.objects["object"] = "five";
  EXPECT_TRUE(absl::IsDataLoss(MakeClient().ReadSegment(record).status()));
}

TEST_F(ClientTest, SendsTheFilesOfADataSetAgainAfterAFailure) {
  service_.unavailable = 1;
  const std::string folder = ::testing::TempDir();
  std::vector<FileToSend> files;
  for (const std::string name : {"client_test_x.npy", "client_test_y.npy"}) {
    files.push_back({folder + "/" + name});
    std::ofstream(files.back().path) << std::string(name == "client_test_x.npy" ? 700'000 : 3, 'x');
  }
  files.push_back({"no/such/folder/packed.zip", std::string(600'000, 'z')});
  int64_t sent = 0;
  v1::PutDatasetRequest::Header header;
  header.set_name("toy");
  header.set_target("price");
  header.set_target_type(v1::FLOAT32_TARGETS);
  const auto dataset = MakeClient().PutDataset(header, files, [&](int64_t bytes) { sent = bytes; });
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->name(), "toy");
  EXPECT_EQ(sent, 1'300'003);
  EXPECT_EQ(service_.header.num_files(), 3);
  EXPECT_EQ(service_.header.target(), "price");
  EXPECT_EQ(service_.header.target_type(), v1::FLOAT32_TARGETS);
  EXPECT_THAT(service_.sizes, ElementsAre(700'000, 3, 600'000));
  ASSERT_EQ(service_.received.size(), 3u);
  EXPECT_EQ(service_.received[0], std::pair(std::string("client_test_x.npy"), std::string(700'000, 'x')));
  EXPECT_EQ(service_.received[1], std::pair(std::string("client_test_y.npy"), std::string(3, 'x')));
  EXPECT_EQ(service_.received[2], std::pair(std::string("packed.zip"), std::string(600'000, 'z')));
}

TEST_F(ClientTest, ATransferMayTakeAsLongAsItsOwnTimeout) {
  const std::vector<FileToSend> files = {FileToSend{"x.npy", "x"}};
  const auto put = [&](absl::Duration first_attempt, int unavailable) {
    service_.unavailable = unavailable;
    bool first = true;
    return MakeClient()
        .PutDataset({}, files,
                    [&](int64_t) {
                      if (std::exchange(first, false)) clock_.Advance(first_attempt);
                    })
        .status();
  };
  EXPECT_TRUE(absl::IsUnavailable(put(absl::Hours(1), 1))) << "no time is left for a second attempt";
  options_.transfer_timeout = absl::Hours(2);
  EXPECT_TRUE(put(absl::Hours(1), 1).ok());
  options_.transfer_timeout = absl::Seconds(5);
  const absl::Duration start = clock_.Monotonic();
  EXPECT_TRUE(absl::IsUnavailable(put(absl::ZeroDuration(), 1000)));
  EXPECT_LE(clock_.Monotonic() - start, absl::Seconds(5));
}

TEST_F(ClientTest, SendsOnlyTheNameOfAUri) {
  const std::string path = ::testing::TempDir() + "/client_test_labels.npy";
  std::ofstream(path) << "xyz";
  const auto dataset =
      MakeClient().PutDataset({}, {{"file:///no/such/x.npy"}, {path}, {"s3://bucket/z.npy"}}, [](int64_t) {});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(service_.header.num_files(), 3);
  EXPECT_THAT(service_.uris, ElementsAre("file:///no/such/x.npy", "", "s3://bucket/z.npy"));
  EXPECT_THAT(service_.sizes, ElementsAre(0, 3, 0));
  EXPECT_EQ(service_.received[0], std::pair(std::string("x.npy"), std::string()));
  EXPECT_EQ(service_.received[1], std::pair(std::string("client_test_labels.npy"), std::string("xyz")));
}

TEST_F(ClientTest, NamesADataSetFileThatCannotBeRead) {
  const auto dataset = MakeClient().PutDataset({}, {{"/no/such/file"}}, [](int64_t) {});
  EXPECT_TRUE(absl::IsNotFound(dataset.status()));
  EXPECT_THAT(std::string(dataset.status().message()), HasSubstr("/no/such/file"));
}

// Two segments of one chain, as a worker commits them.
class DrawReaderTest : public ClientTest {
 protected:
  void SetUp() override {
    std::string parent = FirstParentDigest();
    for (int i = 0; i < 2; ++i) {
      Segment segment{.first_index = i, .kinds = {DrawKind::kTheta}, .parent_digest = parent};
      const std::string bytes =
          EncodeSegment({"toy-abcdef", 0}, {{10 * (i + 1), 1.0, {{1.0f, 2.0f}}}}, {{"w", {2}, 0}}, &segment);
      v1::SegmentRecord record = Store(bytes);
      const std::string name = "object" + std::to_string(i);
      service_.objects[name] = bytes;
      record.mutable_segment()->mutable_object()->set_name(name);
      record.mutable_segment()->set_first_index(i);
      record.mutable_segment()->add_steps(10 * (i + 1));
      record.mutable_segment()->set_parent_digest(parent);
      record.mutable_segment()->set_digest(segment.digest);
      parent = segment.digest;
      records_.push_back(std::move(record));
    }
  }

  absl::Status Read() {
    Client client = MakeClient();
    steps_.clear();
    return ReadDraws(&client, records_, [this](const CheckedSegment& segment) {
      for (const Draw& draw : segment.content.draws) steps_.push_back(draw.step);
      return absl::OkStatus();
    });
  }

  void ExpectDataLoss(const std::string& said) {
    const absl::Status status = Read();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(said));
  }

  std::vector<v1::SegmentRecord> records_;
  std::vector<int64_t> steps_;
};

TEST_F(DrawReaderTest, ReadsAWholePath) {
  EXPECT_TRUE(Read().ok()) << Read();
  EXPECT_THAT(steps_, ElementsAre(10, 20));
}

TEST_F(DrawReaderTest, PassesOverDeletedSegmentsWhoseRecordsLink) {
  records_[0].set_deleted(true);
  EXPECT_TRUE(Read().ok());
  EXPECT_THAT(steps_, ElementsAre(20));
}

TEST_F(DrawReaderTest, NamesTheFirstDrawThatIsMissing) {
  const auto whole = records_;
  records_.erase(records_.begin());
  records_[0].mutable_segment()->set_parent_digest(FirstParentDigest());  // so that only the index tells
  ExpectDataLoss("draws from 1: draw 0 is missing");
  records_ = whole;
  records_[1].mutable_segment()->set_first_index(2);
  ExpectDataLoss("draws from 2: draw 1 is missing");
  EXPECT_THAT(steps_, ElementsAre(10)) << "the segment after the gap is not passed on";
  records_ = whole;
  records_[1].mutable_chain()->set_index(1);
  ExpectDataLoss("/1, draws from 1: draw 0 is missing");
}

TEST_F(DrawReaderTest, FindsAChangedParentDigest) {
  const std::string wrong(64, 'f'), said = "the parent digest is not that of the segment before";
  const auto whole = records_;
  for (size_t i = 0; i < 2; ++i) {
    records_ = whole;
    records_[i].mutable_segment()->set_parent_digest(wrong);
    ExpectDataLoss("draws from " + std::to_string(i) + ": " + said);
  }
  records_ = whole;
  records_[0].set_deleted(true);
  records_[1].mutable_segment()->set_parent_digest(wrong);
  ExpectDataLoss(said);
}

TEST_F(DrawReaderTest, FindsAChangedDigestAlsoIfTheNextRecordNamesItAsItsParent) {
  const std::string wrong(64, 'f'), said = "the content does not have the recorded digest";
  const auto whole = records_;
  records_[1].mutable_segment()->set_digest(wrong);
  ExpectDataLoss("draws from 1: " + said);
  records_ = whole;
  records_[0].mutable_segment()->set_digest(wrong);
  records_[1].mutable_segment()->set_parent_digest(wrong);
  ExpectDataLoss("draws from 0: " + said);
  EXPECT_THAT(steps_, testing::IsEmpty());
}

TEST(ClientOptions, ParsesAddressLists) {
  EXPECT_THAT(*ParseAddresses("a:1"), ElementsAre("a:1"));
  EXPECT_THAT(*ParseAddresses("a:1, [::1]:7400"), ElementsAre("a:1", "[::1]:7400"));
  for (const char* bad : {"", "a", "a:", ":1", "a:0", "a:65536", "a:1,", "a:x"}) {
    EXPECT_EQ(ParseAddresses(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace chainfleet
