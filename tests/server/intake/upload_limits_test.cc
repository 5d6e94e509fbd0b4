#include "server/intake/upload_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

TEST(UploadShare, ATenantHoldsNoMoreThanItLeavesFree) {
  const FairBudget budget(1024);
  std::vector<std::unique_ptr<UploadShare>> greedy;
  for (const int64_t most : {512, 256, 128, 64}) {
    const std::string tenant = absl::StrCat("tenant-", most);
    greedy.push_back(std::make_unique<UploadShare>(&budget, tenant));
    EXPECT_TRUE(greedy.back()->Add(most).ok()) << most;
    UploadShare more(&budget, tenant);
    EXPECT_TRUE(absl::IsResourceExhausted(more.Add(1))) << most;
  }
  EXPECT_EQ(budget.held_bytes(), 960) << "what is refused is given back";
  UploadShare late(&budget, "late");
  const absl::Status refused = late.Add(33);
  EXPECT_EQ(ReasonOf(refused), "UPLOADS_FULL");
  EXPECT_EQ(BoundOf(refused), "uploads");
}

TEST(UploadShare, OneTenantHoldsHalfAndTheOtherHalfIsForTheOthers) {
  const FairBudget budget(100);
  std::optional<UploadShare> first(std::in_place, &budget, "vision");
  UploadShare second(&budget, "vision"), other(&budget, "speech"), third(&budget, "robots");
  EXPECT_TRUE(first->Add(30).ok());
  EXPECT_TRUE(second.Add(20).ok());
  const absl::Status refused = second.Add(1);
  EXPECT_EQ(ReasonOf(refused), "TENANT_LIMIT");
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("vision"));
  EXPECT_EQ(BoundOf(refused), "tenant_uploads");
  EXPECT_EQ(RetryAfterOf(refused), absl::Seconds(1));
  first.reset();
  EXPECT_TRUE(other.Add(30).ok());
  EXPECT_TRUE(third.Add(25).ok()) << "an upload that ends gives its bytes back";
}

TEST(UploadShare, WithoutATenantOnlyTheBoundOfAllCounts) {
  const FairBudget budget(100);
  UploadShare share(&budget);
  EXPECT_TRUE(share.Add(100).ok());
  EXPECT_EQ(ReasonOf(share.Add(1)), "UPLOADS_FULL");
}

TEST(DatasetReads, OneTenantTakesHalfOfThePlacesThatWait) {
  FakeClock clock;
  ManualExecutor executor(&clock);
  DatasetReads reads(&executor, 1);
  int read = 0;
  const auto schedule = [&](const std::string& tenant) { return reads.Schedule(tenant, [&read] { ++read; }); };
  for (int i = 0; i < limits::kWaitingDatasetReads / 2; ++i) ASSERT_TRUE(schedule("vision").ok());
  const absl::Status refused = schedule("vision");
  EXPECT_EQ(ReasonOf(refused), "TENANT_LIMIT");
  EXPECT_EQ(BoundOf(refused), "tenant_dataset_reads");
  EXPECT_EQ(RetryAfterOf(refused), absl::Seconds(1));
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("tenant vision has 8 reads"));
  EXPECT_TRUE(schedule("speech").ok());
  executor.RunOne();
  EXPECT_TRUE(schedule("vision").ok()) << "a read that ends gives its place back";
  executor.RunUntilIdle();
  EXPECT_EQ(read, limits::kWaitingDatasetReads / 2 + 2);
  EXPECT_EQ(reads.unfinished(), 0u);
}

TEST(DatasetReads, WithoutATenantOnlyTheBoundOfAllCounts) {
  FakeClock clock;
  ManualExecutor executor(&clock);
  DatasetReads reads(&executor, 1);
  for (int i = 0; i < 1 + limits::kWaitingDatasetReads; ++i) ASSERT_TRUE(reads.Schedule("", [] {}).ok());
  const absl::Status refused = reads.Schedule("vision", [] {});
  EXPECT_EQ(ReasonOf(refused), "UPLOADS_FULL");
  EXPECT_EQ(BoundOf(refused), "dataset_reads");
}

}  // namespace
}  // namespace chainfleet
