#include "worker/numerics/kernels/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/numerics/kernels/lane_arrays.h"
#include "worker/numerics/kernels/lanes.h"

namespace chainfleet {
namespace {

using testing::AlignedFloats;
constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

struct Answer {
  explicit Answer(const AlignedFloats& logits) : probability(logits.size()), log_normaliser(kLanes) {
    Softmax(logits.data(), logits.size() / kLanes, probability.data(), log_normaliser.data());
  }
  AlignedFloats probability, log_normaliser;
};

void ExpectExact(const AlignedFloats& logits, const Answer& answer) {
  const int64_t classes = logits.size() / kLanes;
  for (int64_t l = 0; l < kLanes; ++l) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k = 0; k < classes; ++k) largest = std::max<double>(largest, logits[k * kLanes + l]);
    for (int64_t k = 0; k < classes; ++k) sum += std::exp(logits[k * kLanes + l] - largest);
    EXPECT_NEAR(answer.log_normaliser[l], largest + std::log(sum), 1e-6 * (1 + std::abs(largest))) << "lane " << l;
    for (int64_t k = 0; k < classes; ++k) {
      const double below = largest - logits[k * kLanes + l], exact = std::exp(-below) / sum;
      // exp turns the rounding of the difference into a relative error; the rounding of the sum is a random walk.
      const double error = 1e-6 + 1e-7 * below + 6e-8 * std::sqrt(classes);
      EXPECT_NEAR(answer.probability[k * kLanes + l], exact, error * exact + 1e-37) << "class " << k << " lane " << l;
    }
  }
}

AlignedFloats Scaled(int64_t classes, float scale) {
  AlignedFloats logits(classes * kLanes, static_cast<uint64_t>(classes));
  for (int64_t i = 0; i < logits.size(); ++i) logits[i] *= scale;
  return logits;
}

TEST(Softmax, MatchesDoublePrecision) {
  testing::ForEachTarget([] {
    for (const int64_t classes : {1, 2, 3, 10, 17, 1000}) {
      for (const float scale : {1e-3f, 1.0f, 20.0f}) {
        const AlignedFloats logits = Scaled(classes, scale);
        ExpectExact(logits, Answer(logits));
      }
    }
  });
}

TEST(Softmax, DoesNotOverflowWhicheverClassIsLarge) {
  testing::ForEachTarget([] {
    for (int64_t top = 0; top < 4; ++top) {
      AlignedFloats logits(4 * kLanes);
      for (int64_t i = 0; i < logits.size(); ++i) logits[i] = i / kLanes == top ? 3e4f : -3e4f;
      const Answer answer(logits);
      for (int64_t i = 0; i < logits.size(); ++i) EXPECT_EQ(answer.probability[i], i / kLanes == top ? 1.0f : 0.0f);
      for (int64_t l = 0; l < kLanes; ++l) EXPECT_EQ(answer.log_normaliser[l], 3e4f) << "class " << top;
    }
  });
}

TEST(Softmax, WorksInPlace) {
  AlignedFloats logits = Scaled(10, 5);
  const Answer apart(logits);
  AlignedFloats log_normaliser(kLanes);
  Softmax(logits.data(), 10, logits.data(), log_normaliser.data());
  EXPECT_EQ(logits.ToVector(), apart.probability.ToVector());
  EXPECT_EQ(log_normaliser.ToVector(), apart.log_normaliser.ToVector());
}

TEST(Softmax, AnImageDoesNotDependOnItsLaneNorOnTheOthers) {
  testing::ForEachTarget([] {
    const AlignedFloats logits = Scaled(10, 5);
    const Answer all(logits);
    AlignedFloats moved(10 * kLanes);
    for (int64_t k = 0; k < 10; ++k) moved[k * kLanes + 13] = logits[k * kLanes + 2];
    const Answer alone(moved);
    for (int64_t k = 0; k < 10; ++k) EXPECT_EQ(alone.probability[k * kLanes + 13], all.probability[k * kLanes + 2]);
    EXPECT_EQ(alone.log_normaliser[13], all.log_normaliser[2]);
  });
}

TEST(Softmax, HasTheSameBitsForEveryVectorWidth) {
  const AlignedFloats logits = Scaled(10, 5);
  const std::vector<float> expected = Answer(logits).probability.ToVector();
  testing::ForEachFusedTarget([&] { EXPECT_EQ(Answer(logits).probability.ToVector(), expected); });
}

TEST(Softmax, ANaNLogitAffectsOnlyItsImage) {
  testing::ForEachTarget([] {
    const AlignedFloats logits = Scaled(10, 5);
    const Answer healthy(logits);
    for (const float bad : {kNan, kInfinity}) {
      for (const int64_t broken_class : {0, 4, 9}) {
        AlignedFloats broken = logits;
        broken[broken_class * kLanes + 5] = bad;
        const Answer answer(broken);
        EXPECT_FALSE(std::isfinite(answer.log_normaliser[5])) << bad << " in class " << broken_class;
        for (int64_t i = 0; i < logits.size(); ++i) {
          if (i % kLanes == 5) continue;
          EXPECT_EQ(answer.probability[i], healthy.probability[i]);
        }
      }
    }
  });
}

}  // namespace
}  // namespace chainfleet
