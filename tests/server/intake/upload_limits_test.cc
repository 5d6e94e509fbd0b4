#include "server/intake/upload_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace chainfleet {
namespace {

TEST(UploadShare, OneTenantHoldsHalfAndTheOtherHalfIsForTheOthers) {
  const UploadBudget budget(100);
  std::optional<UploadShare> first(std::in_place, &budget, "vision");
  UploadShare second(&budget, "vision"), other(&budget, "speech"), third(&budget, "robots");
  EXPECT_TRUE(first->Add(30).ok());
  EXPECT_TRUE(second.Add(20).ok());
  const absl::Status refused = second.Add(1);
  EXPECT_EQ(ReasonOf(refused), "TENANT_LIMIT");
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("vision"));
  EXPECT_TRUE(other.Add(50).ok());
  EXPECT_EQ(ReasonOf(third.Add(1)), "UPLOADS_FULL");
  first.reset();
  EXPECT_TRUE(third.Add(30).ok()) << "an upload that ends gives its bytes back";
}

TEST(UploadShare, WithoutATenantOnlyTheBoundOfAllCounts) {
  const UploadBudget budget(100);
  UploadShare share(&budget);
  EXPECT_TRUE(share.Add(100).ok());
  EXPECT_EQ(ReasonOf(share.Add(1)), "UPLOADS_FULL");
}

}  // namespace
}  // namespace chainfleet
