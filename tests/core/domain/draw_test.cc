#include "core/domain/draw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/base/limits.h"

namespace chainfleet {
namespace {

Segment Good() {
  return {.first_index = 0,
          .steps = {10, 20},
          .weights = {1, 2},
          .kinds = {DrawKind::kTheta, DrawKind::kThetaA},
          .object = {.name = "s/j/0/segments/e1-x", .size_bytes = 10, .sha256 = DigestHex(64, 'a')},
          .digest = DigestHex(64, 'b'),
          .parent_digest = FirstParentDigest()};
}

TEST(Segment, AGoodOnePasses) { EXPECT_TRUE(CheckSegment(Good()).ok()); }

TEST(Segment, HasABoundOnItsDraws) {
  Segment segment = Good();
  segment.steps.resize(limits::kMaxSegmentDraws);
  std::iota(segment.steps.begin(), segment.steps.end(), 1);
  segment.weights.assign(segment.steps.size(), 1);
  EXPECT_TRUE(CheckSegment(segment).ok());
  segment.steps.push_back(segment.steps.back() + 1);
  segment.weights.push_back(1);
  EXPECT_EQ(CheckSegment(segment).message(), "segment at draw 0: it holds 65537 draws, the most is 65536");
}

TEST(Segment, EveryDefectIsRefused) {
  const auto refused = [](auto change) {
    Segment segment = Good();
    change(segment);
    return absl::IsInvalidArgument(CheckSegment(segment));
  };
  EXPECT_TRUE(refused([](Segment& s) { s.first_index = -1; }));
  EXPECT_TRUE(refused([](Segment& s) { s.steps.clear(), s.weights.clear(); }));
  EXPECT_TRUE(refused([](Segment& s) { s.weights.pop_back(); }));
  EXPECT_TRUE(refused([](Segment& s) { s.steps = {20, 20}; }));
  EXPECT_TRUE(refused([](Segment& s) { s.steps = {0, 20}; }));
  EXPECT_TRUE(refused([](Segment& s) { s.weights[1] = 0; }));
  EXPECT_TRUE(refused([](Segment& s) { s.weights[1] = NAN; }));
  EXPECT_TRUE(refused([](Segment& s) { s.kinds.clear(); }));
  EXPECT_TRUE(refused([](Segment& s) { s.kinds = {DrawKind::kThetaA, DrawKind::kTheta}; }));
  EXPECT_TRUE(refused([](Segment& s) { s.digest[0] = 'G'; }));
  EXPECT_TRUE(refused([](Segment& s) { s.object.size_bytes = 0; }));
}

TEST(DrawKind, NamesRoundTrip) {
  for (const DrawKind kind : {DrawKind::kTheta, DrawKind::kThetaA})
    EXPECT_EQ(DrawKindFromString(ToString(kind)).value(), kind);
  EXPECT_FALSE(DrawKindFromString("phi").ok());
}

}  // namespace
}  // namespace chainfleet
