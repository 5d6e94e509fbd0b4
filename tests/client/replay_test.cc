#include "client/cli/verbs/replay.h"

#include <string>
#include <vector>

#include "chainfleet/v1/jobs.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/loopback_server.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Job LongJob() {
  v1::Job job;
  job.mutable_spec()->set_name("long");
  job.mutable_spec()->set_num_steps(1000);
  job.mutable_spec()->set_chains(4);
  job.mutable_spec()->mutable_until()->set_ess_above(400);
  job.mutable_spec()->mutable_retention()->set_keep_last(10);
  job.mutable_spec()->mutable_scheduling()->set_priority("high");
  job.mutable_spec()->mutable_scheduling()->set_success_chains(2);
  return job;
}

TEST(ReplayTest, TheCopyHasAllStepsAndNoRuleThatDependsOnTime) {
  const v1::CreateJobRequest request = CopyRequest(LongJob(), {{{0, 0}, "a"}, {{3, 0}, "b"}});
  EXPECT_EQ(request.spec().num_steps(), 1000) << "schedules depend on it";
  EXPECT_EQ(request.spec().chains(), 4);
  EXPECT_FALSE(request.spec().has_until());
  EXPECT_FALSE(request.spec().has_retention());
  EXPECT_FALSE(request.spec().scheduling().has_success_chains());
  EXPECT_EQ(request.spec().scheduling().priority(), "high");
  EXPECT_FALSE(request.has_only_chain());
}

TEST(ReplayTest, ACopyForOneChainSamplesNoOtherAndStopsAfterItsLastDraw) {
  const v1::CreateJobRequest request = CopyRequest(LongJob(), {{{3, 5}, "a"}, {{3, 6}, "b"}});
  EXPECT_EQ(request.only_chain(), 3);
  EXPECT_EQ(request.spec().until().max_draws(), 7);
  EXPECT_FALSE(request.spec().until().has_ess_above());
  EXPECT_EQ(request.spec().num_steps(), 1000);
}

TEST(ReplayTest, DigestsAreThoseOfTheDrawsInTheRange) {
  v1::SegmentRecord record;
  record.mutable_chain()->set_index(2);
  record.mutable_segment()->set_first_index(4);
  SegmentContent content;
  for (int64_t step = 0; step < 3; ++step) content.draws.push_back({.step = step, .theta = {{1, 2}}});
  DrawDigests digests;
  AddDigests({record, "", content}, {.first = 5, .last = 5}, &digests);
  ASSERT_EQ(digests.size(), 1u);
  EXPECT_EQ(digests.begin()->first, std::pair(2, int64_t{5}));
  AddDigests({record, "", content}, {}, &digests);
  EXPECT_EQ(digests.size(), 3u);
}

// Its only other job is `copy`.
class FakeJobs final : public v1::JobService::Service {
 public:
  grpc::Status CreateJob(grpc::ServerContext*, const v1::CreateJobRequest*, v1::Job* reply) override {
    *reply = copy;
    return grpc::Status::OK;
  }
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest*, v1::Job* reply) override {
    *reply = copy;
    return grpc::Status::OK;
  }
  grpc::Status SetIntent(grpc::ServerContext*, const v1::SetIntentRequest* request, v1::Job* reply) override {
    intents.push_back(request->intent());
    *reply = copy;
    return grpc::Status::OK;
  }
  grpc::Status ListSegments(grpc::ServerContext*, const v1::ListSegmentsRequest*, v1::ListSegmentsResponse*) override {
    return grpc::Status::OK;
  }

  v1::Job copy;
  std::vector<v1::Job::Intent> intents;
};

class ReplayByServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    job_ = LongJob();
    job_.set_id("long-aaaaaa");
    service_.copy.set_id("replay-bbbbbb");
    for (int i = 0; i < 4; ++i) AddChain(v1::CANCELLED, 0);
  }
  void AddChain(v1::ChainState state, int64_t num_draws) {
    v1::Chain& chain = *service_.copy.add_chains();
    chain.mutable_id()->set_index(service_.copy.chains_size() - 1);
    chain.set_state(state);
    chain.set_num_draws(num_draws);
  }

  absl::Status ReplayDraws(const DrawDigests& digests) {
    Invocation run;
    ClientOptions options;
    options.addresses = {server_.address()};
    Client client(options, &run.clock, [](absl::Duration) {});
    return Replay(run, &client, job_, digests);
  }

  FakeJobs service_;
  LoopbackServer server_{&service_};
  v1::Job job_;
};

TEST_F(ReplayByServerTest, AServerThatSamplesAllChainsIsTooOldForOne) {
  service_.copy.mutable_chains(0)->set_state(v1::PENDING);
  service_.copy.mutable_chains(3)->set_state(v1::PENDING);
  const absl::Status status = ReplayDraws({{{3, 0}, "a"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("the server is of an older release and cannot sample one chain: upgrade it"));
  EXPECT_THAT(service_.intents, ElementsAre(v1::Job::DELETE));
}

TEST_F(ReplayByServerTest, AChainOfTheCopyThatEndedWithoutItsDrawsIsNoDifference) {
  service_.copy.mutable_chains(0)->set_state(v1::LEASED);
  service_.copy.mutable_chains(3)->set_num_draws(1);
  for (const v1::Job::State state : {v1::Job::CANCELLED, v1::Job::SUCCEEDED_EARLY, v1::Job::RUNNING}) {
    service_.copy.set_state(state);
    service_.intents.clear();
    service_.copy.mutable_chains(3)->set_reason("somebody stopped it");
    const absl::Status status = ReplayDraws({{{0, 5}, "a"}, {{3, 1}, "b"}});
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_THAT(status.message(),
                HasSubstr("chain replay-bbbbbb/3 ended CANCELLED with 1 of 2 draws: somebody stopped it"));
    EXPECT_THAT(service_.intents, ElementsAre(v1::Job::DELETE));
  }
}

TEST_F(ReplayByServerTest, AChainOfTheCopyThatSucceededWithFewerDrawsIsADifference) {
  service_.copy.mutable_chains(3)->set_state(v1::SUCCEEDED);
  const absl::Status status = ReplayDraws({{{3, 0}, "a"}});
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(status.message(),
            "chain long-aaaaaa/3, draw 0: job replay-bbbbbb, a copy of long-aaaaaa, has no such draw");
  EXPECT_THAT(service_.intents, ElementsAre(v1::Job::CANCEL)) << "the copy stays";
}

}  // namespace
}  // namespace chainfleet
