#include "worker/runtime/lease_deadline.h"

#include <gtest/gtest.h>

#include "worker/runtime/backoff.h"

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

TEST(Backoff, DoublesWithinItsBoundsAndStartsSmallAgainAfterASuccess) {
  Backoff backoff(RngKey{7});
  absl::Duration upper = limits::kRetryInitial;
  for (int i = 0; i < 40; ++i) {
    const absl::Duration wait = backoff.Next();
    EXPECT_GE(wait, upper / 2);
    EXPECT_LE(wait, upper);
    upper = std::min(upper * 2, limits::kRetryMax);
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next(), limits::kRetryInitial);
}

TEST(Backoff, DiffersBetweenWorkers) { EXPECT_NE(Backoff(RngKey{1}).Next(), Backoff(RngKey{2}).Next()); }

}  // namespace
}  // namespace chainfleet
