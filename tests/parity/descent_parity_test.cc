// Compares the optimisers among the samplers with their formulas as plain double-precision loops, step for step.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tests/support/network_chains.h"
#include "tests/support/synthetic_dataset.h"
#include "tests/support/update_reference.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/batch/checkpoint_codec.h"

namespace chainfleet {
namespace {

using testing::ReferenceNormal;
using Values = std::vector<double>;

constexpr int64_t kSize = 150;  // groups of 64, the last one cut
constexpr double kK = 2, kAlpha = 0.05;
constexpr int kSteps = 15;
constexpr uint64_t kSeed = 31;

Values Start() {
  Values x(kSize);
  for (int64_t p = 0; p < kSize; ++p) x[p] = std::sin(static_cast<double>(p)) + 0.1;
  return x;
}

// theta after kSteps steps of chain 0 from Start on U = k |x|^2 / 2.
std::vector<float> RunKernel(const SamplerSpec& sampler) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "descent-aaaaaa";
  plan->spec.name = "descent";
  plan->spec.model.kind = PotentialKind{GaussianPotential{.dimension = kSize, .precision = kK}};
  plan->spec.sampler = sampler;
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{kAlpha}};
  plan->spec.num_steps = kSteps;
  plan->spec.seed = kSeed;
  const auto batch = ChainBatch::Create(plan, nullptr, "cpu");
  EXPECT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE((*batch)->AddChain(0, std::nullopt).ok());
  auto start = DecodeCheckpoint((*batch)->SaveResumePoint(0));
  EXPECT_TRUE(start.ok()) << start.status();
  const Values x = Start();
  start->arenas[0].assign(x.begin(), x.end());
  (*batch)->RemoveChain(0);
  EXPECT_TRUE((*batch)->AddChain(0, EncodeCheckpoint(*start)).ok());
  for (int step = 0; step < kSteps; ++step) EXPECT_TRUE((*batch)->Step().ok());
  return (*batch)->TakeDraw(0).theta[0];
}

void ExpectSame(const std::vector<float>& found, const Values& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t p = 0; p < found.size(); ++p) ASSERT_NEAR(found[p], wanted[p], 2e-5) << p;
}

// Heavy-ball steps with the gradient at `where(x)`.
Values Descend(double momentum, const std::function<Values(const Values&)>& where) {
  Values x = Start(), v(kSize, 0);
  for (int step = 0; step < kSteps; ++step) {
    const Values at = where(x);
    for (int64_t p = 0; p < kSize; ++p) {
      v[p] = momentum * v[p] + kK * at[p];
      x[p] -= kAlpha * v[p];
    }
  }
  return x;
}

TEST(SgdParity, IsHeavyBallDescent) {
  ExpectSame(RunKernel({SgdSpec{0.6}}), Descend(0.6, [](const Values& x) { return x; }));
}

TEST(AdamwParity, FollowsItsFormulas) {
  Values x = Start(), m(kSize, 0), v(kSize, 0);
  for (int step = 1; step <= kSteps; ++step) {
    for (int64_t p = 0; p < kSize; ++p) {
      const double g = kK * x[p];
      m[p] = 0.6 * m[p] + 0.4 * g;
      v[p] = 0.999 * v[p] + 0.001 * g * g;
      const double root = std::sqrt(v[p] / (1 - std::pow(0.999, step)));
      x[p] -= kAlpha * m[p] / (1 - std::pow(0.6, step)) / (root + 1e-8);
    }
  }
  ExpectSame(RunKernel({SgdSpec{0.6, Optimizer::kAdamw}}), x);
}

// The first step divides each coordinate of the gradient by its own size.
TEST(AdamwParity, MovesByTheLearningRateAndDecaysByThePriorOverN) {
  constexpr double kPrecision = 200, kRate = 1e-3;
  const auto data = SyntheticImages(96);
  const auto plan = NetworkPlan({BuiltinModel{"softmax_regression", {}}}, {SgdSpec{0.6, Optimizer::kAdamw}}, *data);
  plan->spec.schedule = {StepScale::kLearningRate, ConstantSchedule{kRate}};
  plan->spec.prior.kind = GaussianPrior{kPrecision};
  const auto batch = BatchOf(plan, data, "cpu", 1);
  const std::vector<float> before = DecodeCheckpoint(batch->SaveResumePoint(0))->arenas[0];
  ASSERT_TRUE(batch->Step().ok());
  const std::vector<float> after = DecodeCheckpoint(batch->SaveResumePoint(0))->arenas[0];
  size_t moved = 0;
  for (size_t p = 0; p < before.size(); ++p) {
    const double kept = (1 - kRate * kPrecision / 96) * before[p];
    moved += std::abs(std::abs(after[p] - kept) - kRate) < 1e-3 * kRate;
  }
  EXPECT_GT(moved, before.size() * 9 / 10) << "but for pixels that are dark in the whole batch";
}

TEST(SamParity, TakesTheGradientWhereTheBatchIsWorst) {
  const double rho = 0.5;
  ExpectSame(RunKernel({SamSpec{rho, 0.6}}), Descend(0.6, [&](const Values& x) {
               double norm = 0;
               for (const double value : x) norm += kK * kK * value * value;
               Values sharp = x;
               for (double& value : sharp) value += rho * kK * value / (std::sqrt(norm) + 1e-12);
               return sharp;
             }));
}

TEST(BsamParity, FollowsItsFormulas) {
  const BsamSpec b{.beta1 = 0.8,
                   .beta2 = 0.9,
                   .prior_precision = 3,
                   .rho = 0.1,
                   .damping = 0.1,
                   .initial_scale = 1.5,
                   .data_multiplier = 4,
                   .parts = 2};
  const RngKey chain = Fold(RngKey{kSeed}, 0);
  const double n = b.data_multiplier, delta = b.prior_precision / n;  // one stored example
  Values x = Start(), m(kSize, 0), s(kSize, b.initial_scale);
  for (int step = 0; step < kSteps; ++step) {
    for (int64_t p = 0; p < kSize; ++p) {
      double gradient = 0, root = 0;
      for (uint64_t part = 1; part <= 2; ++part) {
        const double z = ReferenceNormal(Fold(chain, part), RngStream::kThetaNoise, step, p);
        const double g = kK * (x[p] + z / std::sqrt(n * s[p]));
        gradient += kK * (x[p] + b.rho * g / s[p]) / 2;
        root += std::sqrt(s[p]) * std::abs(g) / 2;
      }
      m[p] = b.beta1 * m[p] + (1 - b.beta1) * (gradient + delta * x[p]);
      x[p] -= kAlpha * m[p] / s[p];
      s[p] = b.beta2 * s[p] + (1 - b.beta2) * (root + b.damping + delta);
    }
  }
  ExpectSame(RunKernel({b}), x);
}

}  // namespace
}  // namespace chainfleet
