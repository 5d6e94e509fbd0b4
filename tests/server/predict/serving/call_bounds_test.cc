#include "server/predict/serving/call_bounds.h"

#include "core/base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(CallBounds, RefusesAnAnswerThatNoMessageHoldsWithTheRowsThatFit) {
  const int64_t row = ScoreBytes(Classes{10}, 0);
  EXPECT_EQ(row, 2 * 8 * (2 * 10 + 5)) << "two probabilities for each class, five numbers, and their errors";
  EXPECT_EQ(ScoreBytes(Numbers(), 32), 2 * 8 * (3 + 32)) << "mean, two variances and quantiles, and their errors";
  const int64_t fit = (limits::kMaxMessageBytes - limits::kMiB) / row;
  EXPECT_TRUE(CheckReplyBytes(fit, row).ok());
  const absl::Status refused = CheckReplyBytes(fit + 1, row);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("ask for " + std::to_string(fit) + " rows"));
}

}  // namespace
}  // namespace chainfleet
