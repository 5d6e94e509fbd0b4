#include "worker/runtime/session/lease_deadline.h"

#include <gtest/gtest.h>

namespace chainfleet {
namespace {

TEST(LeaseDeadline, CountsFromBeforeTheRequestAndEndsAMarginEarly) {
  const LeaseDeadline deadline(absl::Seconds(100), absl::Seconds(15));
  EXPECT_TRUE(deadline.IsGood(absl::Seconds(113) - absl::Nanoseconds(1)));
  EXPECT_FALSE(deadline.IsGood(absl::Seconds(113)));
}

TEST(LeaseDeadline, NeverStartsGood) { EXPECT_FALSE(LeaseDeadline().IsGood(absl::ZeroDuration())); }

TEST(LeaseDeadline, KeepsTwoThirdsOfAShortTerm) {
  const LeaseDeadline deadline(absl::ZeroDuration(), absl::Seconds(3));
  EXPECT_TRUE(deadline.IsGood(absl::Milliseconds(1999)));
  EXPECT_FALSE(deadline.IsGood(absl::Seconds(2)));
}

TEST(LeaseDeadline, IsNeverShortenedByALateReply) {
  LeaseDeadline deadline(absl::Seconds(10), absl::Seconds(15));
  deadline.Extend(LeaseDeadline(absl::Seconds(5), absl::Seconds(15)));
  EXPECT_TRUE(deadline.IsGood(absl::Seconds(22)));
  deadline.Extend(LeaseDeadline(absl::Seconds(20), absl::Seconds(15)));
  EXPECT_TRUE(deadline.IsGood(absl::Seconds(32)));
}

}  // namespace
}  // namespace chainfleet
