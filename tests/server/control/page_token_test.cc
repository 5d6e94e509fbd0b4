#include "server/control/page_token.h"

#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(PageToken, GivesItsCursorBackForTheSameArgumentsOnly) {
  const std::string token = MakePageToken("jobs RUNNING", "17");
  EXPECT_EQ(CursorOf("jobs RUNNING", token).value(), "17");
  EXPECT_TRUE(absl::IsInvalidArgument(CursorOf("jobs", token).status()));
  EXPECT_EQ(CursorOf("jobs", "").value(), "");
}

TEST(PageToken, RefusesWhatNobodyMade) {
  EXPECT_FALSE(CursorOf("jobs", "17").ok());
  std::string forged = MakePageToken("jobs", "17");
  forged.back() = '8';
  EXPECT_EQ(ReasonOf(CursorOf("jobs", forged).status()), "BAD_PAGE_TOKEN");
}

}  // namespace
}  // namespace chainfleet
