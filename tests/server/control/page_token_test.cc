#include "server/control/page_token.h"

#include "core/base/content_limits.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(PageToken, GivesItsCursorBackForTheSameArgumentsOnly) {
  const std::string token = MakePageToken("jobs RUNNING", "17");
  EXPECT_EQ(CursorOf("jobs RUNNING", token).value(), "17");
  EXPECT_TRUE(absl::IsInvalidArgument(CursorOf("jobs", token).status()));
  EXPECT_EQ(CursorOf("jobs", "").value(), "");
}

TEST(PageToken, RefusesForgedTokens) {
  EXPECT_FALSE(CursorOf("jobs", "17").ok());
  std::string forged = MakePageToken("jobs", "17");
  forged.back() = '8';
  EXPECT_EQ(ReasonOf(CursorOf("jobs", forged).status()), "BAD_PAGE_TOKEN");
}

TEST(PageRoom, TakesItemsUpToItsCountAndItsBytesButAlwaysTheFirst) {
  PageRoom room(3);
  EXPECT_TRUE(room.Take(2 * limits::kPageBytes));
  EXPECT_FALSE(room.Take(1)) << "the first item filled the page";
  PageRoom small(2);
  EXPECT_TRUE(small.Take(limits::kPageBytes - 1));
  EXPECT_FALSE(small.Take(2));
  EXPECT_TRUE(small.Take(1));
  EXPECT_FALSE(small.Take(0)) << "two items";
}

}  // namespace
}  // namespace chainfleet
