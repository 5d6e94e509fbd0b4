#include "core/base/backoff.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chainfleet {
namespace {

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

TEST(Backoff, DiffersBetweenKeys) { EXPECT_NE(Backoff(RngKey{1}).Next(), Backoff(RngKey{2}).Next()); }

TEST(Backoff, CountsFailuresSinceTheLastSuccess) {
  Backoff backoff(RngKey{7});
  EXPECT_EQ(backoff.failures(), 0);
  for (int i = 0; i < 3; ++i) backoff.Next();
  EXPECT_EQ(backoff.failures(), 3);
  backoff.Reset();
  EXPECT_EQ(backoff.failures(), 0);
}

}  // namespace
}  // namespace chainfleet
