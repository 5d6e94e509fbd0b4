#include "server/control/tenant_limits.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/control/catalog.h"
#include "server/control/job_table.h"
#include "tests/support/recording_store.h"

namespace chainfleet {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr int64_t kNone = TenantLimits::kNone;

class TenantLimitsTest : public testing::Test {
 protected:
  // A job of `chains` chains that has committed 10 draws of 8 bytes.
  void Add(const std::string& tenant, int chains, bool finished = false, const std::string& request_id = "") {
    auto plan = std::make_shared<JobPlan>();
    plan->job = "job-" + std::to_string(++made_);
    plan->spec.model.kind = GaussianPotential{2, 1.0};
    plan->spec.collect.kinds = {DrawKind::kTheta};
    plan->spec.chains = chains;
    StoredJob stored;
    stored.row.id = plan->job;
    stored.row.tenant = tenant;
    stored.row.sequence = made_;
    stored.row.request_id = request_id;
    if (finished) stored.row.finished_at = absl::UnixEpoch();
    for (int i = 0; i < chains; ++i) {
      ChainRow& row = stored.chains.emplace_back();
      row.id = {plan->job, i};
      if (finished) row.state = ChainState::kSucceeded;
    }
    stored.chains.front().num_draws = 10;
    stored.row.plan = std::move(plan);
    jobs_.Add(std::move(stored));
  }
  absl::StatusOr<std::shared_ptr<TenantReservation>> Reserve(TenantQuotas* quotas, const TenantRequest& request) const {
    return quotas->Reserve(jobs_, Catalog(nullptr, store_, contents_, RngKey{}), request);
  }
  absl::Status Check(const TenantLimits& limits, const TenantRequest& request) const {
    TenantQuotas quotas(limits);
    return Reserve(&quotas, request).status();
  }

  JobTable jobs_;
  RecordingStore store_;
  StoredState contents_;
  int made_ = 0;
};

TEST_F(TenantLimitsTest, BoundsTheJobsAndUnfinishedChainsOfATenantAndOfNoOther) {
  Add("vision", 3);
  Add("vision", 2, true);
  Add("speech", 50);
  EXPECT_TRUE(Check({.jobs = 3, .chains = 7}, {"vision", "", 1, 4}).ok());
  const absl::Status jobs = Check({.jobs = 2}, {"vision", "", 1, 1});
  EXPECT_EQ(ReasonOf(jobs), "TENANT_LIMIT");
  EXPECT_THAT(std::string(jobs.message()), AllOf(HasSubstr("vision has 2 of 2 jobs"), HasSubstr("--tenant-jobs")));
  const absl::Status chains = Check({.chains = 7}, {"vision", "", 1, 5});
  EXPECT_THAT(std::string(chains.message()),
              AllOf(HasSubstr("has 3 of 7 chains and asks for 5 more: wait until a job ends, or cancel one"),
                    HasSubstr("--tenant-chains")));
  EXPECT_GT(RetryAfterOf(chains), RetryAfterOf(jobs)) << "only chains end by themselves";
  EXPECT_TRUE(Check({.jobs = 1, .chains = 7}, {"vision", "", 0, 4}).ok()) << "chains for a job that is there";
}

TEST_F(TenantLimitsTest, ATenantMayHaveBoundsOfItsOwn) {
  const TenantLimits limits{.jobs = {0, {{"vision", 9}}},
                            .chains = {0, {{"vision", 9}}},
                            .contents = {0, {{"vision", 9}}},
                            .stored_bytes = {0, {{"vision", 900}}}};
  const TenantRequest all{.tenant = "vision", .jobs = 1, .chains = 1, .bytes = 1, .contents = 1};
  EXPECT_TRUE(Check(limits, all).ok()) << Check(limits, all);
  EXPECT_EQ(BoundOf(Check(limits, {.tenant = "speech", .jobs = 1})), "tenant_jobs");
  EXPECT_EQ(BoundOf(Check(limits, {.tenant = "speech", .chains = 1})), "tenant_chains");
  EXPECT_EQ(BoundOf(Check(limits, {.tenant = "speech", .contents = 1})), "tenant_contents");
  EXPECT_EQ(BoundOf(Check(limits, {.tenant = "speech", .bytes = 1})), "tenant_stored_gib");
  Add("vision", 7);
  EXPECT_THAT(std::string(Check(limits, {"vision", "", 0, 3}).message()), HasSubstr("has 7 of 9 chains"));
  for (int i = 0; i < 8; ++i) Add("vision", 17, true);
  EXPECT_THAT(std::string(Check(limits, {"vision", "", 0, 2}).message()),
              HasSubstr("has 143 of 144 chains with those that ended"));
}

TEST_F(TenantLimitsTest, BoundsTheChainsThatAreKept) {
  for (int i = 0; i < TenantLimits::kKeptChains; ++i) Add("vision", 3, true);
  EXPECT_TRUE(Check({.chains = 4}, {"vision", "", 1, 4}).ok());
  const absl::Status full = Check({.chains = 3}, {"vision", "", 1, 1});
  EXPECT_THAT(std::string(full.message()), HasSubstr("has 48 of 48 chains with those that ended and asks for 1 more"));
  EXPECT_EQ(BoundOf(full), "tenant_chains");
}

TEST_F(TenantLimitsTest, BoundsTheBytesOfDrawsDataSetsAndModelsTogether) {
  Add("vision", 1);
  Add("vision", 1, true);  // its draws are still stored
  contents_.datasets = {{.name = "a", .shards = {{0, 1, {"s0", 30, ""}}, {1, 1, {"s1", 10, ""}}}, .tenant = "vision"},
                        {.name = "b", .shards = {{0, 1, {"s2", 1000, ""}}}, .tenant = "speech"}};
  contents_.models = {{.name = "m", .object = {"m", 100, ""}, .tenant = "vision"}};
  EXPECT_TRUE(Check({.stored_bytes = 301}, {"vision", "", 1, 1}).ok());
  const absl::Status full = Check({.stored_bytes = 300}, {"vision", "", 1, 1});
  EXPECT_THAT(std::string(full.message()),
              AllOf(HasSubstr("300 of 300 stored bytes"), HasSubstr("--tenant-stored-gib")));
  EXPECT_TRUE(Check({.stored_bytes = 310}, {.tenant = "vision", .bytes = 10}).ok());
  EXPECT_EQ(ReasonOf(Check({.stored_bytes = 310}, {.tenant = "vision", .bytes = 11})), "TENANT_LIMIT");
}

TEST_F(TenantLimitsTest, BoundsTheDataSetsAndModelsOfATenantTogether) {
  contents_.datasets = {{.name = "a", .tenant = "vision"}, {.name = "b", .tenant = "speech"}};
  contents_.models = {{.name = "m", .tenant = "vision"}};
  const auto upload = [](const std::string& object) {
    return TenantRequest{.tenant = "vision", .bytes = 1, .object = object, .contents = 1};
  };
  TenantQuotas quotas({.contents = 3});
  const auto held = Reserve(&quotas, upload("model n"));
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_TRUE(Reserve(&quotas, upload("model n")).ok()) << "the same once more";
  const absl::Status full = Reserve(&quotas, upload("dataset c")).status();
  EXPECT_EQ(BoundOf(full), "tenant_contents");
  EXPECT_THAT(std::string(full.message()),
              AllOf(HasSubstr("has 3 of 3 data sets and models and asks for 1 more"), HasSubstr("--tenant-contents")));
  EXPECT_TRUE(Reserve(&quotas, {"vision", "r1", 1, 1}).ok()) << "a job adds none";
}

TEST_F(TenantLimitsTest, CountsALongListOfTensorsAsSeveralModels) {
  StoredModel model{.name = "m", .tenant = "vision", .signature = NetworkSignature()};
  EXPECT_EQ(ContentsOf(model), 1);
  for (int i = 0; i < 2000; ++i) model.signature->parameters.push_back({.name = std::to_string(i), .shape = {0}});
  const int64_t contents = ContentsOf(model);
  EXPECT_GT(contents, 3);
  contents_.models = {model};
  const TenantRequest upload{.tenant = "vision", .bytes = 1, .object = "model n", .contents = 1};
  EXPECT_FALSE(Check({.contents = contents}, upload).ok());
  EXPECT_TRUE(Check({.contents = contents + 1}, upload).ok());
}

TEST_F(TenantLimitsTest, ARequestThatIsRepeatedAsksForNothingMore) {
  Add("vision", 1, false, "r1");
  EXPECT_TRUE(Check({.jobs = 1}, {"vision", "r1", 1, 1}).ok());
  EXPECT_FALSE(Check({.jobs = 1}, {"vision", "r2", 1, 1}).ok());
}

TEST_F(TenantLimitsTest, CountsARequestUntilItsReservationEnds) {
  Add("vision", 1);
  TenantQuotas quotas({.jobs = 2, .chains = 4, .stored_bytes = 100});
  auto first = Reserve(&quotas, {"vision", "r1", 1, 3});
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status jobs = Reserve(&quotas, {"vision", "r2", 1, 1}).status();
  EXPECT_THAT(std::string(jobs.message()), HasSubstr("vision has 2 of 2 jobs and asks for 1 more"));
  EXPECT_EQ(BoundOf(Reserve(&quotas, {"vision", "", 0, 1}).status()), "tenant_chains");
  EXPECT_TRUE(Reserve(&quotas, {"speech", "r2", 1, 4}).ok()) << "another tenant has its own room";
  (*first)->Release();
  (*first)->Release();
  EXPECT_TRUE(Reserve(&quotas, {"vision", "r2", 1, 3}).ok()) << "its reservation ends here";
  EXPECT_TRUE(Reserve(&quotas, {"vision", "r3", 1, 3}).ok());
}

TEST_F(TenantLimitsTest, CountsReservedBytesWithStoredOnes) {
  Add("vision", 1);  // 80 bytes
  TenantQuotas quotas({.stored_bytes = 100});
  const TenantRequest upload{.tenant = "vision", .bytes = 20, .object = "model a"};
  auto held = Reserve(&quotas, upload);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(BoundOf(Reserve(&quotas, {"vision", "r1", 1, 1}).status()), "tenant_stored_gib");
  held = absl::CancelledError("destroys the reservation");
  EXPECT_TRUE(Reserve(&quotas, {"vision", "r1", 1, 1}).ok());
}

TEST_F(TenantLimitsTest, CountsEqualRequestsOnceUntilTheLastEnds) {
  TenantQuotas quotas({.jobs = 1, .stored_bytes = 100});
  const auto first = Reserve(&quotas, {"vision", "r1", 1, 1}), again = Reserve(&quotas, {"vision", "r1", 1, 1});
  ASSERT_TRUE(again.ok()) << again.status();
  (*first)->Release();
  EXPECT_FALSE(Reserve(&quotas, {"vision", "r2", 1, 1}).ok()) << "the second call may still create the job";
  (*again)->Release();
  EXPECT_TRUE(Reserve(&quotas, {"vision", "r2", 1, 1}).ok());
}

TEST_F(TenantLimitsTest, ARequestForAJobThatExistsHoldsNoRoom) {
  Add("vision", 1, false, "r1");
  TenantQuotas quotas({.jobs = 2});
  const auto repeated = Reserve(&quotas, {"vision", "r1", 1, 1});
  EXPECT_TRUE(Reserve(&quotas, {"vision", "r2", 1, 1}).ok());
}

TEST_F(TenantLimitsTest, ShowsTheUsageByWhichItRefuses) {
  Add("vision", 3);
  Add("vision", 2, true);
  Add("speech", 50);
  contents_.models = {{.name = "m", .object = {"m", 100, ""}, .tenant = "vision"}};
  TenantQuotas quotas({.jobs = {9, {{"vision", 4}}}, .chains = 7});
  const auto held = Reserve(&quotas, {"vision", "r1", 1, 4});
  ASSERT_TRUE(held.ok()) << held.status();
  std::map<std::string, std::pair<int64_t, int64_t>> usage;
  for (const LimitUsage& one : quotas.Usage(jobs_, Catalog(nullptr, store_, contents_, RngKey{}), "vision")) {
    usage[one.name] = {one.used, one.limit};
  }
  EXPECT_THAT(usage, ElementsAre(Pair("chains", Pair(7, 7)), Pair("contents", Pair(1, kNone)), Pair("jobs", Pair(3, 4)),
                                 Pair("kept_chains", Pair(9, 7 * TenantLimits::kKeptChains)),
                                 Pair("stored_bytes", Pair(260, kNone))));
  EXPECT_THAT(std::string(Reserve(&quotas, {"vision", "r2", 2, 1}).status().message()),
              HasSubstr("vision has 3 of 4 jobs and asks for 2 more"));
}

TEST_F(TenantLimitsTest, AReservationMayOutliveTheQuotas) {
  auto quotas = std::make_unique<TenantQuotas>(TenantLimits());
  const auto held = Reserve(quotas.get(), {"vision", "r1", 1, 1});
  quotas.reset();
  (*held)->Release();
}

}  // namespace
}  // namespace chainfleet
