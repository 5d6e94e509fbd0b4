// Compares Metropolis kernels with their exact laws: acceptance in stationarity, moments, and the effect of noise in
// the energy difference on both.
//
// A law holds if the estimate lies within 4 standard errors, which are at most 0.4 % of the value. Rows are independent
// chains, so the standard error comes from their means.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "tests/support/kernel_rows.h"
#include "worker/numerics/potentials/gaussian_potential.h"
#include "worker/numerics/samplers/noisy_acceptance.h"

namespace chainfleet {
namespace {

using testing::Estimate;
using testing::EstimateOf;
using testing::KernelRows;
using testing::OneParameter;

void ExpectLaw(const char* what, const Estimate& estimate, double law) {
  EXPECT_NEAR(estimate.value, law, 4 * estimate.error) << what << " +- " << estimate.error;
  EXPECT_LE(estimate.error, 0.004 * std::abs(law)) << what << " is measured too roughly to mean it";
}

struct Means {
  Estimate acceptance, mean, square;
};

// Starts at N(0, start_variance), makes `burn_in` steps, then averages `steps` more: a state weighs the steps it was
// held.
Means AveragesOf(KernelRows* rows, double start_variance, int burn_in, int steps) {
  rows->Set([&](int64_t row) {
    return std::sqrt(start_variance) * NormalDouble(RngKey{11}, RngStream::kInit, static_cast<uint64_t>(row), 0);
  });
  std::vector<double> accepted(rows->rows()), sum(rows->rows()), square(rows->rows());
  for (int step = -burn_in; step < steps; ++step) {
    const std::vector<StepInfo> info = rows->Step();
    if (step < 0) continue;
    for (int64_t row = 0; row < rows->rows(); ++row) {
      accepted[row] += info[row].moved ? 1.0 / steps : 0;
      sum[row] += rows->theta(row) / steps;
      square[row] += rows->theta(row) * rows->theta(row) / steps;
    }
  }
  return {EstimateOf(accepted), EstimateOf(sum), EstimateOf(square)};
}

// exp(-U / T) of U = k x^2 / 2; steps and times that make it the law of N(0, 1) at scale sqrt(T / k).
constexpr double kPrecision = 2, kTemperature = 0.7;
constexpr int64_t kRows = 2500;

Means RunOnGaussian(const Kernel& kernel, double step_size, int steps) {
  const auto potential = MakeGaussianPotential(GaussianPotential{1, kPrecision}, OneParameter(), Device{});
  KernelRows rows(kernel, potential.get(), 0, kRows, 20, step_size, kTemperature);
  return AveragesOf(&rows, kTemperature / kPrecision, 30, steps);
}

void ExpectGaussian(const Means& means) {
  ExpectLaw("variance", means.square, kTemperature / kPrecision);
  EXPECT_NEAR(means.mean.value, 0, 4 * means.mean.error);
}

TEST(RandomWalkLaws, AcceptanceAndVarianceOfAGaussianAreExact) {
  constexpr double s = 2.4;
  const Means means = RunOnGaussian(RandomWalk{}, s * std::sqrt(kTemperature / kPrecision), 300);
  ExpectLaw("acceptance", means.acceptance, 2 / std::numbers::pi * std::atan(2 / s));
  ExpectGaussian(means);
}

TEST(MalaLaws, AcceptanceAndVarianceOfAGaussianAreExact) {
  constexpr double h = 1.5;  // without the ratio of proposals, 8 % of the variance would be missing
  const Means means = RunOnGaussian(Mala{}, h / kPrecision, 150);
  const double law = 2 / std::numbers::pi * std::acos(h * h / std::sqrt((h * h + 2 * h) * (h * h - 2 * h + 4)));
  ExpectLaw("acceptance", means.acceptance, law);
  ExpectGaussian(means);
}

// L leapfrog steps are a linear map of determinant 1 in units where the law is the unit normal; with sigma its larger
// singular value the acceptance is 2 P(H' < H) = (4 / pi) atan(1 / sigma).
double HmcAcceptance(double epsilon, int leapfrog_steps) {
  double a = 1, b = 0, c = 0, d = 1;  // theta' = a theta + b p, p' = c theta + d p
  for (int i = 0; i < leapfrog_steps; ++i) {
    const double e2 = epsilon * epsilon, diagonal = 1 - e2 / 2, below = -epsilon * (1 - e2 / 4);
    const double a2 = diagonal * a + epsilon * c, b2 = diagonal * b + epsilon * d;
    c = below * a + diagonal * c;
    d = below * b + diagonal * d;
    a = a2;
    b = b2;
  }
  const double norm = a * a + b * b + c * c + d * d;
  return 4 / std::numbers::pi * std::atan(1 / std::sqrt((norm + std::sqrt(norm * norm - 4)) / 2));
}

TEST(HmcLaws, AcceptanceAndVarianceOfAGaussianAreExact) {
  constexpr double epsilon = 1.6;
  const Means means = RunOnGaussian(Hmc{4}, epsilon / std::sqrt(kPrecision), 150);
  EXPECT_LT(HmcAcceptance(epsilon, 4), 0.8);
  ExpectLaw("acceptance", means.acceptance, HmcAcceptance(epsilon, 4));
  ExpectGaussian(means);
}

// U(x) as N examples of u(x) / N each. Every second call on all examples adds a fresh normal error to each. With one
// example for each batch, the difference of two places is normal around the true difference with variance `noise`.
class NoisyPotential final : public Potential {
 public:
  NoisyPotential(std::function<double(double)> u, double noise) : u_(std::move(u)), error_(std::sqrt(noise)) {}
  static constexpr int64_t kExamples = int64_t{1} << 30;  // so many that the finite population has no effect

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return kExamples; }
  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    errs_ = !errs_;
    for (int64_t row = 0; row < theta.rows(); ++row) {
      const double u = u_(theta.row(row)[0]);
      for (int64_t i = 0; i < batch.size; ++i) *losses++ = (u + (errs_ ? error_ * Normal() : 0)) / kExamples;
    }
  }
  void LogPrior(const ThetaArena& theta, const double*, double* log_prior) override {
    std::fill_n(log_prior, theta.rows(), 0.0);
  }
  // A gradient with an error of its batch, the same at every place.
  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    for (int64_t row = 0; row < theta.rows(); ++row) {
      const double error = NormalDouble(RngKey{1}, RngStream::kProbe, static_cast<uint64_t>(batch.row(row)[0]), 0);
      gradient->row(row)[0] = static_cast<float>(theta.row(row)[0] + 0.5 * error);
      energy[row] = 0;
    }
  }

 private:
  // Uses both numbers of a Box-Muller pair, because these tests spend most of their time here.
  double Normal() {
    if (spare_) return *std::exchange(spare_, std::nullopt);
    const PhiloxBlock b = RandomBlock(RngKey{2}, RngStream::kProbe, calls_++, 0);
    const float radius = std::sqrt(-2 * std::log(UniformFloat(b.word[0])));
    const float angle = 2 * std::numbers::pi_v<float> * UniformFloat(b.word[1]);
    spare_ = radius * std::sin(angle);
    return radius * std::cos(angle);
  }

  const std::function<double(double)> u_;
  const double error_;
  bool errs_ = true;
  uint64_t calls_ = 0;
  std::optional<double> spare_;
  const std::shared_ptr<const Layout> layout_ = OneParameter();
};

// The mean of 8 numbers of precision 1/4 each, their own mean being 1; prior precision 1.
class MeanPotential final : public Potential {
 public:
  static constexpr int64_t kExamples = 8;
  static constexpr double kWeight = 0.25;

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return kExamples; }
  double prior_precision() const override { return 1; }
  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    for (int64_t row = 0; row < theta.rows(); ++row) {
      for (int64_t i = 0; i < batch.size; ++i) {
        const double gap = theta.row(row)[0] - (static_cast<double>(batch.row(row)[i]) - 2.5);
        *losses++ = kWeight / 2 * gap * gap;
      }
    }
  }
  void LogPrior(const ThetaArena& theta, const double*, double* log_prior) override {
    for (int64_t row = 0; row < theta.rows(); ++row) log_prior[row] = -theta.row(row)[0] * theta.row(row)[0] / 2.0;
  }
  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    for (int64_t row = 0; row < theta.rows(); ++row) {
      double sum = 0;
      for (int64_t i = 0; i < batch.size; ++i) {
        sum += kWeight * (theta.row(row)[0] - (static_cast<double>(batch.row(row)[i]) - 2.5));
      }
      gradient->row(row)[0] = static_cast<float>(static_cast<double>(kExamples) / batch.size * sum);
      energy[row] = 0;
    }
  }

 private:
  const std::shared_ptr<const Layout> layout_ = OneParameter();
};

// The likelihood to the power 20 / 8: precision 1 + 20 / 4 = 6, mean 5 / 6.
TEST(DataSizeLaws, LikelihoodCountsAsDataSizeExamples) {
  constexpr double data_size = 20;
  MinibatchMh walk = {.num_batches = 4, .data_size = data_size}, langevin = walk;
  langevin.proposal = Proposal::kLangevin;
  for (const auto& [kernel, step_size] :
       {std::pair<Kernel, double>(RandomWalk{data_size}, 0.9), {walk, 0.9}, {langevin, 0.1}}) {
    MeanPotential potential;
    KernelRows rows(kernel, &potential, 2, kRows, 24, step_size, kTemperature);  // 4 batches of 2 are all data
    const Means means = AveragesOf(&rows, kTemperature / 6, 40, 300);
    ExpectLaw("mean", means.mean, 5.0 / 6);
    ExpectLaw("square", means.square, kTemperature / 6 + 25.0 / 36);
  }
}

double Phi(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// E min(1, exp(-delta - penalty)), delta ~ N(difference, variance).
double AcceptanceWith(double difference, double variance, double penalty) {
  const double s = std::sqrt(variance), d = difference + penalty;
  return Phi(-d / s) + std::exp(variance / 2 - d) * Phi(d / s - s);
}

// The same, averaged over the penalty of a variance estimated from M normal differences: chi2 is variance / (M - 1)
// times a chi-squared variable with M - 1 degrees of freedom.
double AcceptanceWithEstimate(double difference, double variance, int64_t m, double (*penalty)(double, int64_t)) {
  const double shape = (m - 1) / 2.0, scale = variance / shape, last = 4 + 12 / std::sqrt(shape);
  double sum = 0, mass = 0;
  constexpr int kPoints = 800;
  for (int i = 0; i < kPoints; ++i) {
    const double g = (i + 0.5) / kPoints * last;  // chi2 over variance
    const double weight = std::exp((shape - 1) * std::log(g) - shape * (g - 1));
    mass += weight;
    sum += weight * AcceptanceWith(difference, variance, penalty(g * scale * shape, m));
  }
  return sum / mass;
}

double PlainPenalty(double x, int64_t) { return x / 2; }

// Returns 1 / T_eff of detailed balance at small differences: A(D) / A(-D) = exp(-D / T_eff).
double EffectiveTemperature(double variance, int64_t m, double (*penalty)(double, int64_t)) {
  constexpr double d = 1e-3;
  return d /
         std::log(AcceptanceWithEstimate(-d, variance, m, penalty) / AcceptanceWithEstimate(d, variance, m, penalty));
}

TEST(PenaltyLaws, CorrectionMeetsTheTemperaturesOfTheMethod) {
  EXPECT_NEAR(EffectiveTemperature(1, 10, PlainPenalty), 1.018, 6e-4);
  EXPECT_NEAR(EffectiveTemperature(2, 10, PlainPenalty), 1.045, 6e-4);
  EXPECT_NEAR(EffectiveTemperature(2, 20, PlainPenalty), 1.022, 6e-4);
  EXPECT_NEAR(EffectiveTemperature(1, 10, CorrectedPenalty), 1.003, 6e-4);
  EXPECT_NEAR(EffectiveTemperature(2, 10, CorrectedPenalty), 1.015, 6e-4);
  EXPECT_NEAR(EffectiveTemperature(2, 20, CorrectedPenalty), 1.003, 6e-4);
}

MinibatchMh Penalised(int64_t num_batches, MinibatchMh::Rule rule = MinibatchMh::Rule::kPenalty) {
  return {.rule = rule, .num_batches = num_batches};
}

// Acceptance of moves whose true difference is `difference`, for every proposal: rows start at 0 each time, and U is 0
// there and `difference` T elsewhere.
Estimate AcceptanceAt(const MinibatchMh& kernel, double difference, double variance, int looks) {
  const double t = kTemperature;
  NoisyPotential potential([&](double x) { return x == 0 ? 0 : difference * t; },
                           variance * t * t * static_cast<double>(kernel.num_batches));
  KernelRows rows(kernel, &potential, 1, kRows, 21, 1, t);
  std::vector<double> accepted;
  for (int look = 0; look < looks; ++look) {
    rows.Set([](int64_t) { return 0; });
    for (const StepInfo& info : rows.Step()) accepted.push_back(info.moved ? 1 : 0);
  }
  return EstimateOf(accepted);
}

TEST(PenaltyLaws, AcceptanceAtAKnownDifferenceIsExact) {
  constexpr double variance = 1;
  for (const double difference : {-0.5, 0.5}) {
    // With 200 batches the variance is known almost exactly.
    ExpectLaw("acceptance", AcceptanceAt(Penalised(200), difference, variance, 36),
              AcceptanceWith(difference, variance, variance / 2));
  }
}

TEST(PenaltyLaws, AcceptanceWithAnEstimatedVarianceIsExact) {
  constexpr double variance = 2;
  using enum MinibatchMh::Rule;
  ExpectLaw("u_B", AcceptanceAt(Penalised(20), 0.5, variance, 50),
            AcceptanceWithEstimate(0.5, variance, 20, CorrectedPenalty));
  ExpectLaw("chi2 / 2", AcceptanceAt(Penalised(20, kPlainPenalty), 0.5, variance, 50),
            AcceptanceWithEstimate(0.5, variance, 20, PlainPenalty));
  ExpectLaw("no penalty", AcceptanceAt(Penalised(20, kNone), 0.5, variance, 50), AcceptanceWith(0.5, variance, 0));
}

TEST(BarkerLaws, NoiseIsCompletedToTheLogisticLaw) {
  for (const double variance : {0.1, 0.5}) {
    ExpectLaw("acceptance", AcceptanceAt(Penalised(40, MinibatchMh::Rule::kBarker), 0.5, variance, 45),
              1 / (1 + std::exp(0.5)));
  }
}

// Second moment of the chain with proposals x + s z and acceptance a(difference) on U = x^2 / 2, on a grid.
double StationarySquare(double s, const std::function<double(double)>& acceptance) {
  constexpr int kPoints = 241;
  constexpr double kEdge = 6, kGap = 2 * kEdge / (kPoints - 1);
  const auto x = [&](int i) { return -kEdge + kGap * i; };
  std::vector<double> move(kPoints * kPoints), law(kPoints, 1.0 / kPoints), next(kPoints);
  for (int i = 0; i < kPoints; ++i) {
    double leave = 0;
    for (int j = 0; j < kPoints; ++j) {
      if (j == i) continue;
      const double z = (x(j) - x(i)) / s, density = std::exp(-z * z / 2) / (s * std::sqrt(2 * std::numbers::pi));
      leave += move[i * kPoints + j] = kGap * density * acceptance((x(j) * x(j) - x(i) * x(i)) / 2);
    }
    move[i * kPoints + i] = 1 - leave;
  }
  for (int sweep = 0; sweep < 300; ++sweep) {
    std::fill(next.begin(), next.end(), 0.0);
    for (int i = 0; i < kPoints; ++i) {
      for (int j = 0; j < kPoints; ++j) next[j] += law[i] * move[i * kPoints + j];
    }
    law.swap(next);
  }
  double square = 0;
  for (int i = 0; i < kPoints; ++i) square += law[i] * x(i) * x(i);
  return square;
}

// The noise of differences is 2 T^2; at T = 1 here, U = x^2 / 2.
Means RunNoisy(const MinibatchMh& kernel, double step_size, double variance, int steps) {
  NoisyPotential potential([](double x) { return x * x / 2; }, variance * static_cast<double>(kernel.num_batches));
  KernelRows rows(kernel, &potential, 1, kRows, 22, step_size);
  return AveragesOf(&rows, 1, 40, steps);
}

TEST(PenaltyLaws, StationaryLawUnderNoiseMatchesTheEstimatedPenalty) {
  constexpr double s = 2, variance = 2;
  // A table, because the grid makes 58,000 look-ups.
  const auto square_with = [&](double (*penalty)(double, int64_t)) {
    std::vector<double> table;
    for (int i = 0; i <= 3600; ++i) table.push_back(AcceptanceWithEstimate(-18 + 0.01 * i, variance, 20, penalty));
    return StationarySquare(s, [&](double d) { return table[std::lround((d + 18) * 100)]; });
  };
  const double corrected = square_with(CorrectedPenalty), plain = square_with(PlainPenalty);
  EXPECT_NEAR(corrected, 1, 0.01);
  EXPECT_GT(plain, corrected + 0.01);
  ExpectLaw("u_B", RunNoisy(Penalised(20), s, variance, 350).square, corrected);
  ExpectLaw("chi2 / 2", RunNoisy(Penalised(20, MinibatchMh::Rule::kPlainPenalty), s, variance, 350).square, plain);
}

TEST(PenaltyLaws, LangevinProposalsWithANoisyGradientKeepTheLaw) {
  MinibatchMh kernel = Penalised(20);
  kernel.proposal = Proposal::kLangevin;
  ExpectLaw("variance", RunNoisy(kernel, 0.8, 0.3, 120).square, 1);
}

TEST(PenaltyLaws, ReportTheNoiseTheySee) {
  NoisyPotential potential([](double x) { return x * x / 2; }, 2 * 20 * kTemperature * kTemperature);
  KernelRows rows(Penalised(20), &potential, 1, kRows, 23, 0.5, kTemperature);
  for (int step = 0; step < 99; ++step) rows.Step();
  std::vector<double> variance, skew, kurtosis, guarded;
  for (const StepInfo& info : rows.Step()) {
    variance.push_back(info.metropolis.noise_variance);
    skew.push_back(info.metropolis.skew);
    kurtosis.push_back(info.metropolis.kurtosis);
    guarded.push_back(info.metropolis.guarded);
  }
  ExpectLaw("noise variance", EstimateOf(variance), 2);
  ExpectLaw("kurtosis", EstimateOf(kurtosis), 3);
  EXPECT_NEAR(EstimateOf(skew).value, 0, 4 * EstimateOf(skew).error);
  // P(chi2 > M / 4): 2 / 19 times a chi-squared variable of 19 degrees of freedom beyond 5.
  EXPECT_NEAR(EstimateOf(guarded).value, 3.03e-4, 4 * EstimateOf(guarded).error);
}

}  // namespace
}  // namespace chainfleet
