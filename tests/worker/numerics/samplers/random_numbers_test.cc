// Tests Philox and the numbers that are made from it: normals, batches, permutations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "core/base/rng_key.h"
#include "worker/numerics/kernels/update.h"
#include "worker/numerics/potentials/minibatch.h"

namespace chainfleet {
namespace {

void ExpectBlock(const PhiloxBlock& block, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  EXPECT_EQ(block.word[0], a);
  EXPECT_EQ(block.word[1], b);
  EXPECT_EQ(block.word[2], c);
  EXPECT_EQ(block.word[3], d);
}

// The vectors published with Random123.
TEST(Philox, GivesTheKnownAnswers) {
  ExpectBlock(Philox(RngKey{0}, {{0, 0, 0, 0}}), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  ExpectBlock(Philox(RngKey{~uint64_t{0}}, {{~0u, ~0u, ~0u, ~0u}}), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
  ExpectBlock(Philox(RngKey{0x299f31d0a4093822}, {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}), 0xd16cfe09,
              0x94fdcceb, 0x5001e420, 0x24126ea1);
}

TEST(Philox, UniformsAreNeverZero) {
  EXPECT_EQ(UniformFloat(0), 0x1p-24f);
  EXPECT_EQ(UniformFloat(~0u), 1.0f);
  EXPECT_GT(UniformDouble(0, 0), 0.0);
  EXPECT_LT(UniformDouble(~0u, ~0u), 1.0);
}

TEST(Fold, GivesDistinctKeysToLabels) {
  std::set<uint64_t> keys;
  for (uint64_t label = 0; label < 1000; ++label) keys.insert(Fold(RngKey{7}, label).value);
  for (uint64_t label = 0; label < 1000; ++label) keys.insert(Fold(RngKey{8}, label << 32).value);
  EXPECT_EQ(keys.size(), 2000u);
}

// z of the fused update: theta = 0, step size 0, noise 1.
std::vector<float> FusedNormals(int64_t count, uint64_t t) {
  std::vector<float> theta(count), gradient(count);
  const TensorSpan span{0, 0, count};
  UpdateBuffers buffers;
  buffers.spans = &span;
  buffers.num_spans = 1;
  buffers.num_parameters = buffers.row_stride = count;
  buffers.rows = 1;
  buffers.theta = theta.data();
  buffers.gradient = gradient.data();
  RowStep step;
  step.key = RngKey{2024};
  step.t = t;
  step.noise = 1;
  RowOutcome outcome;
  LangevinUpdateCpu(buffers, &step, &outcome);
  return theta;
}

TEST(Normals, HaveTheMomentsOfTheNormalLaw) {
  constexpr int64_t kCount = 4 << 20;
  const std::vector<float> z = FusedNormals(kCount, 3);
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (const double x : z) {
    m1 += x;
    m2 += x * x;
    m3 += x * x * x;
    m4 += x * x * x * x;
  }
  const double error = 4 / std::sqrt(static_cast<double>(kCount));  // 4 standard errors of a unit variance
  EXPECT_NEAR(m1 / kCount, 0, error);
  EXPECT_NEAR(m2 / kCount, 1, error * std::sqrt(2.0));
  EXPECT_NEAR(m3 / kCount, 0, error * std::sqrt(15.0));
  EXPECT_NEAR(m4 / kCount, 3, error * std::sqrt(96.0));
}

TEST(Normals, PassKolmogorovSmirnov) {
  std::vector<float> z = FusedNormals(1 << 20, 4);
  std::sort(z.begin(), z.end());
  const double count = static_cast<double>(z.size());
  double distance = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    const double cdf = 0.5 * std::erfc(-z[i] / std::sqrt(2.0));
    distance = std::max({distance, cdf - i / count, (i + 1) / count - cdf});
  }
  EXPECT_LT(distance * std::sqrt(count), 1.95);  // significance 0.001
}

TEST(Normals, AreUncorrelatedAcrossStepsAndNeighbours) {
  constexpr int64_t kCount = 1 << 20;
  const std::vector<float> a = FusedNormals(kCount, 5), b = FusedNormals(kCount, 6);
  for (const int64_t lag : {0, 1, 16, 32, 64}) {
    double across = 0, within = 0;
    for (int64_t i = 0; i + lag < kCount; ++i) {
      across += static_cast<double>(a[i]) * b[i + lag];
      within += lag == 0 ? 0 : static_cast<double>(a[i]) * a[i + lag];
    }
    EXPECT_NEAR(across / kCount, 0, 4 / std::sqrt(static_cast<double>(kCount))) << lag;
    EXPECT_NEAR(within / kCount, 0, 4 / std::sqrt(static_cast<double>(kCount))) << lag;
  }
}

TEST(KeyedPermutation, VisitsEveryPositionOnce) {
  for (const int64_t size : {1, 2, 3, 5, 64, 100, 1000, 60000}) {
    const KeyedPermutation permutation(RngKey{static_cast<uint64_t>(size)}, size);
    std::vector<bool> seen(size, false);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t image = permutation(i);
      ASSERT_TRUE(image >= 0 && image < size);
      ASSERT_FALSE(seen[image]) << "size " << size << " visits " << image << " twice";
      seen[image] = true;
    }
  }
}

// Chi-squared of where a position goes, over keys: 49 degrees of freedom.
TEST(KeyedPermutation, SendsAPositionEverywhereEquallyOften) {
  constexpr int64_t kSize = 50, kKeys = 100000;
  for (const int64_t position : {0, 17, 49}) {
    std::vector<double> counts(kSize, 0);
    for (uint64_t key = 0; key < kKeys; ++key) ++counts[KeyedPermutation(Fold(RngKey{1}, key), kSize)(position)];
    double chi2 = 0;
    const double expected = static_cast<double>(kKeys) / kSize;
    for (const double count : counts) chi2 += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi2, 49 + 4 * std::sqrt(2.0 * 49)) << position;
  }
}

TEST(MinibatchPlan, AnEpochShowsEveryExampleOnceAndLeavesTheTailOut) {
  constexpr int64_t kExamples = 103, kBatch = 10;
  const MinibatchPlan plan(Minibatches::kReshuffle, kExamples, kBatch);
  std::vector<std::vector<int64_t>> epochs;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> ids(10 * kBatch);
    for (int64_t b = 0; b < 10; ++b) plan.Fill(RngKey{5}, 10 * epoch + b, ids.data() + b * kBatch);
    EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), 100u);
    EXPECT_LT(*std::max_element(ids.begin(), ids.end()), kExamples);
    epochs.push_back(ids);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(MinibatchPlan, IndependentBatchesAreUniformWithReplacement) {
  constexpr int64_t kExamples = 37, kBatch = 8, kSteps = 20000;
  const MinibatchPlan plan(Minibatches::kIndependent, kExamples, kBatch);
  std::vector<double> counts(kExamples, 0);
  int64_t repeats = 0;
  std::vector<int64_t> ids(kBatch);
  for (int64_t t = 0; t < kSteps; ++t) {
    plan.Fill(RngKey{6}, t, ids.data());
    for (const int64_t id : ids) ++counts[id];
    repeats += std::set<int64_t>(ids.begin(), ids.end()).size() < kBatch;
  }
  double chi2 = 0;
  const double expected = static_cast<double>(kSteps * kBatch) / kExamples;
  for (const double count : counts) chi2 += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi2, 36 + 4 * std::sqrt(2.0 * 36));
  EXPECT_GT(repeats, 0);
}

TEST(MinibatchPlan, ChainsHaveBatchesOfTheirOwn) {
  for (const Minibatches kind : {Minibatches::kReshuffle, Minibatches::kIndependent}) {
    const MinibatchPlan plan(kind, 1000, 10);
    std::vector<int64_t> a(10), b(10), again(10);
    plan.Fill(Fold(RngKey{7}, 0), 3, a.data());
    plan.Fill(Fold(RngKey{7}, 1), 3, b.data());
    plan.Fill(Fold(RngKey{7}, 0), 3, again.data());
    EXPECT_NE(a, b);
    EXPECT_EQ(a, again);
  }
}

}  // namespace
}  // namespace chainfleet
