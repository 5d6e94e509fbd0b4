// Compares SGLD and EMCMC under mini-batch noise with exact stationary laws: batches drawn with replacement, and epochs
// of a reshuffled data set, which have less noise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <variant>
#include <vector>

#include "tests/support/langevin_law.h"
#include "tests/support/linear_law.h"
#include "worker/numerics/samplers/kernel.h"

namespace chainfleet {
namespace {

using ::testing::IsEmpty;
using testing::Law;
using testing::Misfits;
using testing::Quadratic;
using testing::Samples;
using testing::StationaryLaw;

constexpr int64_t kData = 64, kBatch = 8, kStepsPerEpoch = kData / kBatch;
constexpr double kPrior = 0.5, kWeight = 0.02, kCoupling = 2.5;

// Coordinate p of example i, 1 <= p < kData: columns of a Hadamard matrix, of mean 0, variance 1 and orthogonal, so
// that the coordinates of a chain are uncorrelated though they share its batches.
int Datum(int64_t i, int64_t p) { return std::popcount(static_cast<uint64_t>(i & p)) % 2 == 0 ? 1 : -1; }

Quadratic PosteriorWith(double coupling) {
  return {.k = kPrior + kData * kWeight,
          .coupling = coupling,
          .step_size = 0.1,
          .temperature = 0.02,
          .gradient_variance = kData * kData * kWeight * kWeight / kBatch,
          .num_examples = kData,
          .batch_size = kBatch};
}

// The means of normal laws of likelihood precision kWeight, a Gaussian prior on each; posterior mean 0.
class MeanPotential final : public Potential {
 public:
  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return kData; }
  double prior_precision() const override { return kPrior; }
  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    for (int64_t r = 0; r < theta.rows(); ++r) {
      for (int64_t p = 1; p < kData; ++p) {
        int sum = 0;
        for (int64_t i = 0; i < batch.size; ++i) sum += Datum(batch.row(r)[i], p);
        const double mean = static_cast<double>(sum) / static_cast<double>(batch.size);
        gradient->row(r)[p - 1] = static_cast<float>(kData * kWeight * (theta.row(r)[p - 1] - mean));
      }
      energy[r] = 0;
    }
  }
  void Losses(const ThetaArena&, const BatchRows&, double*) override {}
  void LogPrior(const ThetaArena&, const double*, double*) override {}

 private:
  const std::shared_ptr<const Layout> layout_ =
      std::make_shared<const Layout>(std::vector<ParameterShape>{{"means", {kData - 1}, 0, 0}});
};

// Many chains with batches of their own, read once: `position` steps into the epoch after burn-in.
Samples RunChains(const Kernel& kernel, Minibatches kind, int64_t position) {
  constexpr int kRows = 8000, kBurnInEpochs = 8;
  const Quadratic q = PosteriorWith(0);
  MeanPotential potential;
  const MinibatchPlan batches(kind, kData, kBatch);
  SamplerState state;
  for (size_t i = 0; i < ArenaNames(kernel).size(); ++i) state.arenas.emplace_back(potential.layout(), Device{});
  for (ThetaArena& arena : state.arenas) {
    for (int r = 0; r < kRows; ++r) arena.AddRow();
  }
  StepScratch scratch(ThetaArena(potential.layout(), Device{}));
  std::vector<ChainStep> chains(kRows);
  for (int r = 0; r < kRows; ++r) chains[r] = {Fold(RngKey{77}, r), 0, q.step_size, q.temperature, true};
  for (int64_t t = 0; t < kBurnInEpochs * kStepsPerEpoch + position; ++t) {
    const StepInputs inputs{.potential = &potential, .batches = &batches, .chains = chains, .scratch = &scratch};
    std::visit([&](const auto& k) { k.Step(inputs, &state); }, kernel);
    for (ChainStep& chain : chains) ++chain.t;
  }
  Samples samples{.group = kData - 1};
  for (int r = 0; r < kRows; ++r) {
    for (size_t i = 0; i < state.arenas.size(); ++i) {
      std::vector<float>& kind_samples = i == 0 ? samples.theta : samples.theta_a;
      kind_samples.insert(kind_samples.end(), state.arenas[i].row(r), state.arenas[i].row(r) + kData - 1);
    }
  }
  return samples;
}

// (T + alpha V / 2) / (k (1 - alpha k / 2)).
TEST(SgldLaws, IndependentBatchesHeatAsTheLawSays) {
  const Quadratic q = PosteriorWith(0);
  const Law law{(q.temperature + q.step_size * q.gradient_variance / 2) / (q.k * (1 - q.step_size * q.k / 2)), 0, 0};
  EXPECT_GT(law.var, 1.5 * q.temperature / (q.k * (1 - q.step_size * q.k / 2))) << "the noise must matter here";
  EXPECT_THAT(Misfits(RunChains(Sgld{}, Minibatches::kIndependent, 0), law), IsEmpty());
}

TEST(EmcmcLaws, IndependentBatchesHeatAsTheLawSays) {
  EXPECT_THAT(
      Misfits(RunChains(Emcmc{1 / kCoupling}, Minibatches::kIndependent, 0), StationaryLaw(PosteriorWith(kCoupling))),
      IsEmpty());
}

// theta_a decays too: the joint recursion with the prior on both.
TEST(EmcmcLaws, DecayingAnchorHasItsFiniteStepLaw) {
  const Quadratic q = PosteriorWith(kCoupling);
  const double a = q.step_size, g = kCoupling, noise = 2 * a * q.temperature;
  const testing::LinearStep step{{{1 - a * (q.k + g), a * g}, {a * g, 1 - a * (g + kPrior)}},
                                 {{noise + a * a * q.gradient_variance, 0}, {0, noise}}};
  const auto sigma = testing::CovarianceAfter(2, 2000, [&](int64_t) { return step; });
  EXPECT_THAT(Misfits(RunChains(Emcmc{1 / kCoupling, true}, Minibatches::kIndependent, 0),
                      {sigma[0][0], sigma[0][1], sigma[1][1]}),
              IsEmpty());
}

// (T + alpha V / (2 a)) / (k (1 - alpha k / (2 (2 - a)))).
TEST(SghmcLaws, IndependentBatchesHeatAsTheLawSays) {
  const Quadratic q = PosteriorWith(0);
  const double a = 0.5;
  const Law law{
      (q.temperature + q.step_size * q.gradient_variance / (2 * a)) / (q.k * (1 - q.step_size * q.k / (2 * (2 - a)))),
      0, 0};
  Samples samples = RunChains(Sghmc{a}, Minibatches::kIndependent, 0);
  samples.theta_a.clear();  // the momentum
  EXPECT_THAT(Misfits(samples, law), IsEmpty());
}

// Kick, half drift, friction, half drift, a kick with a gradient of variance V. There is no closed form, so this is the
// recursion. For alpha k -> 0 the variance is (T + alpha (2 - a) / (4 a) V) / k.
TEST(SghmcLaws, IndependentBatchesHeatBaoaAsTheLawSays) {
  const Quadratic q = PosteriorWith(0);
  const double a = 0.5, c = 1 - a, e = std::sqrt(q.step_size);
  const testing::LinearStep kick{{{1, 0}, {-e * q.k, 1}}, testing::Outer({0, e * std::sqrt(q.gradient_variance)})},
      drift{{{1, e / 2}, {0, 1}}, testing::Zeros(2)},
      friction{{{1, 0}, {0, c}}, testing::Outer({0, std::sqrt(q.temperature * (1 - c * c))})};
  const testing::LinearStep whole = Then(Then(Then(kick, drift), friction), drift);
  const auto sigma = testing::CovarianceAfter(2, 2000, [&](int64_t) { return whole; });
  EXPECT_GT(sigma[0][0], 1.5 * q.temperature / q.k) << "the noise must matter here";
  Samples samples = RunChains(Sghmc{a, SghmcScheme::kBaoa}, Minibatches::kIndependent, 0);
  samples.theta_a.clear();  // the momentum
  EXPECT_THAT(Misfits(samples, {sigma[0][0], 0, 0}), IsEmpty());
}

TEST(SgldLaws, ReshuffledBatchesHeatLess) {
  EXPECT_THAT(Misfits(RunChains(Sgld{}, Minibatches::kReshuffle, 0),
                      StationaryLaw(PosteriorWith(0), Minibatches::kReshuffle, 0)),
              IsEmpty());
}

TEST(SgldLaws, ReshuffledBatchesHeatMoreInTheMiddleOfAnEpoch) {
  EXPECT_THAT(Misfits(RunChains(Sgld{}, Minibatches::kReshuffle, 4),
                      StationaryLaw(PosteriorWith(0), Minibatches::kReshuffle, 4)),
              IsEmpty());
}

TEST(EmcmcLaws, ReshuffledBatchesHeatLess) {
  EXPECT_THAT(Misfits(RunChains(Emcmc{1 / kCoupling}, Minibatches::kReshuffle, 0),
                      StationaryLaw(PosteriorWith(kCoupling), Minibatches::kReshuffle, 0)),
              IsEmpty());
}

// Compares the law itself with a plain program that draws from it.
TEST(ReshuffledLaw, MatchesAPlainSimulation) {
  constexpr int kRuns = 300000, kEpochs = 5;
  const Quadratic q = PosteriorWith(kCoupling);
  const double noise = std::sqrt(2 * q.step_size * q.temperature);
  std::mt19937_64 generator(11);
  std::normal_distribution<double> normal;
  std::vector<double> data(kData);
  for (int64_t i = 0; i < kData; ++i) data[i] = Datum(i, 1);
  Samples samples;
  for (int run = 0; run < kRuns; ++run) {
    double theta = 0, theta_a = 0;
    for (int64_t step = 0; step < kEpochs * kStepsPerEpoch; ++step) {
      const auto first = data.begin() + step % kStepsPerEpoch * kBatch;
      if (first == data.begin()) std::shuffle(data.begin(), data.end(), generator);
      const double mean = std::accumulate(first, first + kBatch, 0.0) / kBatch;
      const double force = kPrior * theta + kData * kWeight * (theta - mean), pull = kCoupling * (theta - theta_a);
      theta += noise * normal(generator) - q.step_size * (force + pull);
      theta_a += noise * normal(generator) + q.step_size * pull;
    }
    samples.theta.push_back(static_cast<float>(theta));
    samples.theta_a.push_back(static_cast<float>(theta_a));
  }
  EXPECT_THAT(Misfits(samples, StationaryLaw(q, Minibatches::kReshuffle, 0)), IsEmpty());
}

// 64 data, n = 8, alpha k = .1: variance .0526 without mini-batch noise, .0574 with independent batches; reshuffled,
// over an epoch, .0537.
TEST(ReshuffledLaw, IsBetweenNoNoiseAndIndependentBatches) {
  Quadratic q{.k = 1, .step_size = 0.1, .temperature = 0.05, .num_examples = kData, .batch_size = kBatch};
  EXPECT_NEAR(StationaryLaw(q).var, 0.0526, 5e-5);
  q.gradient_variance = 0.0906;
  EXPECT_NEAR(StationaryLaw(q).var, 0.0574, 5e-5);
  double mean = 0;
  for (int64_t p = 0; p < kStepsPerEpoch; ++p) {
    mean += StationaryLaw(q, Minibatches::kReshuffle, p).var / kStepsPerEpoch;
  }
  EXPECT_NEAR(mean, 0.0537, 5e-5);
}

}  // namespace
}  // namespace chainfleet
