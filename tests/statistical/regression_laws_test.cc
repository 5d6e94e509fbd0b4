// Runs Bayesian linear regression through the job interface, SGLD and EMCMC on independent mini-batches. Compares mean
// and covariance of the draws with the exact law of the finite step under mini-batch noise.
//
// With h_i = x_i x_i' / noise variance, g_i the gradient of example i at the posterior mean and e = theta - mean, a
// batch of n makes e <- (I - alpha H_B) e - alpha g_B + noise, H_B = precision I + (N/n) sum h_i. The covariance S of e
// is therefore a fixed point: S = A S A' + 2 alpha T I + alpha^2 (N^2/n) (Cov_i(g_i) + mean_i(h_i S h_i) - h S h), with
// A = I - alpha H and h = mean_i(h_i); the anchor of EMCMC adds its force to A. V = N^2 Cov_i(g_i) / n is the part that
// does not depend on theta.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/domain/sweep_points.h"
#include "tests/support/estimate.h"
#include "tests/support/regression_dataset.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kWeights = 3;  // two inputs and the intercept
constexpr int64_t kData = 24, kBatch = 6;
constexpr double kAlpha = 0.04, kTemperature = 0.8, kPrecision = 2, kNoiseVariance = 4, kCoupling = 8;

using Matrix = std::vector<std::vector<double>>;
Matrix Zeros(size_t n) { return Matrix(n, std::vector<double>(n)); }
Matrix Identity(size_t n) {
  Matrix m = Zeros(n);
  for (size_t i = 0; i < n; ++i) m[i][i] = 1;
  return m;
}
// a m b', and a b for m = I.
Matrix Product(const Matrix& a, const Matrix& m, const Matrix& b) {
  const size_t n = a.size();
  Matrix am = Zeros(n), out = Zeros(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t k = 0; k < n; ++k) am[i][j] += a[i][k] * m[k][j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t k = 0; k < n; ++k) out[i][j] += am[i][k] * b[j][k];
    }
  }
  return out;
}
void Add(double factor, const Matrix& from, Matrix* to) {
  for (size_t i = 0; i < from.size(); ++i) {
    for (size_t j = 0; j < from.size(); ++j) (*to)[i][j] += factor * from[i][j];
  }
}

struct Law {
  std::vector<double> mean;  // theta, then theta_a
  Matrix covariance;
};

struct Posterior {
  explicit Posterior(double precision) {
    const Table table = MakeTable(kData, kWeights - 1, false);
    Matrix normal = Zeros(kWeights);  // H, followed by its right-hand side
    Add(precision, Identity(kWeights), &normal);
    std::vector<double> right(kWeights);
    for (int64_t i = 0; i < kData; ++i) {
      std::vector<double> x = {(table.inputs[2 * i] - 0.3) / 1.7, (table.inputs[2 * i + 1] - 0.3) / 1.7, 1};
      Matrix h = Zeros(kWeights);
      for (int a = 0; a < kWeights; ++a) {
        for (int b = 0; b < kWeights; ++b) h[a][b] = x[a] * x[b] / kNoiseVariance;
        right[a] += x[a] * table.targets[i] / kNoiseVariance;
      }
      Add(1, h, &normal);
      Add(1.0 / kData, h, &mean_h);
      example_h.push_back(h);
    }
    hessian = normal;
    mean = right;
    for (int a = 0; a < kWeights; ++a) {  // Gauss-Jordan
      for (int b = 0; b < kWeights; ++b) {
        if (b == a) continue;
        const double factor = normal[b][a] / normal[a][a];
        for (int c = 0; c < kWeights; ++c) normal[b][c] -= factor * normal[a][c];
        mean[b] -= factor * mean[a];
      }
    }
    for (int a = 0; a < kWeights; ++a) mean[a] /= normal[a][a];
    std::vector<double> mean_g(kWeights);
    for (int64_t i = 0; i < kData; ++i) {
      const std::vector<double> x = {(table.inputs[2 * i] - 0.3) / 1.7, (table.inputs[2 * i + 1] - 0.3) / 1.7, 1};
      double gap = -table.targets[i];
      for (int a = 0; a < kWeights; ++a) gap += x[a] * mean[a];
      for (int a = 0; a < kWeights; ++a) {
        mean_g[a] += x[a] * gap / kNoiseVariance / kData;
        for (int b = 0; b < kWeights; ++b) {
          gradient_covariance[a][b] += x[a] * x[b] * gap * gap / (kNoiseVariance * kNoiseVariance) / kData;
        }
      }
    }
    for (int a = 0; a < kWeights; ++a) {
      for (int b = 0; b < kWeights; ++b) gradient_covariance[a][b] -= mean_g[a] * mean_g[b];
    }
  }

  std::vector<double> mean;
  Matrix hessian, mean_h = Zeros(kWeights), gradient_covariance = Zeros(kWeights);
  std::vector<Matrix> example_h;
};

// `coupling` > 0 adds the anchor; `noise` is N^2 / n.
Law FiniteStepLaw(double coupling, double noise = double{kData} * kData / kBatch, double precision = kPrecision) {
  const Posterior posterior(precision);
  const size_t size = coupling > 0 ? 2 * kWeights : kWeights;
  Matrix a = Identity(size);
  for (int i = 0; i < kWeights; ++i) {
    for (int j = 0; j < kWeights; ++j) a[i][j] -= kAlpha * posterior.hessian[i][j];
    if (coupling == 0) continue;
    a[i][i] -= kAlpha * coupling;
    a[i][kWeights + i] += kAlpha * coupling;
    a[kWeights + i][i] += kAlpha * coupling;
    a[kWeights + i][kWeights + i] -= kAlpha * coupling;
  }
  Law law{posterior.mean, Zeros(size)};
  if (coupling > 0) law.mean.insert(law.mean.end(), posterior.mean.begin(), posterior.mean.end());
  for (int iteration = 0; iteration < 2000; ++iteration) {
    Matrix next = Product(a, law.covariance, a), theta = Zeros(kWeights), seen = posterior.gradient_covariance;
    Add(2 * kAlpha * kTemperature, Identity(size), &next);
    for (int i = 0; i < kWeights; ++i) {
      for (int j = 0; j < kWeights; ++j) theta[i][j] = law.covariance[i][j];
    }
    for (const Matrix& h : posterior.example_h) Add(1.0 / kData, Product(h, theta, h), &seen);
    Add(-1, Product(posterior.mean_h, theta, posterior.mean_h), &seen);
    for (int i = 0; i < kWeights; ++i) {
      for (int j = 0; j < kWeights; ++j) next[i][j] += kAlpha * kAlpha * noise * seen[i][j];
    }
    law.covariance = next;
  }
  return law;
}

// Each draw: theta, then theta_a if the sampler has one; a chain's draws in a row, chain by chain.
struct Samples {
  int64_t chains = 0;
  std::vector<std::vector<double>> draws;
};

// Returns the draws by point of the sweep.
std::vector<Samples> RunSweep(const SamplerSpec& sampler, const SweepSpec& sweep,
                              const ModelSpec& model = {LinearRegressionPotential{kNoiseVariance}}) {
  constexpr int kChains = 4096, kBurnIn = 4, kStepsBetween = 12;
  const int looks = 48 * NumPoints(sweep);
  EXPECT_TRUE(InitializeDevice("cpu", 1).ok());
  const auto data = Resident(MakeTable(kData, kWeights - 1, false));
  auto plan = std::make_shared<JobPlan>();
  plan->job = "law-aaaaaa";
  plan->dataset = data->description();
  plan->normalisation = data->description().normalisation;
  plan->spec.name = "law";
  plan->spec.dataset = "table";
  plan->spec.model = model;
  plan->spec.prior.kind = GaussianPrior{kPrecision};
  plan->spec.sampler = sampler;
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{kAlpha}};
  plan->spec.temperature = kTemperature;
  plan->spec.batch_size = kBatch;
  plan->spec.minibatches = Minibatches::kIndependent;
  plan->spec.num_steps = (kBurnIn + looks) * kStepsBetween;
  plan->spec.chains = kChains / NumPoints(sweep);
  plan->spec.sweep = sweep;
  plan->spec.seed = 20240607;
  const auto batch = ChainBatch::Create(plan, data, "cpu");
  EXPECT_TRUE(batch.ok()) << batch.status();
  for (int chain = 0; chain < kChains; ++chain) EXPECT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  std::vector<Samples> samples(NumPoints(sweep), Samples{plan->spec.chains, {}});
  std::vector<std::vector<std::vector<double>>> of_chain(kChains);
  for (int look = 0; look < kBurnIn + looks; ++look) {
    for (int step = 0; step < kStepsBetween; ++step) EXPECT_TRUE((*batch)->Step().ok());
    if (look < kBurnIn) continue;
    for (int chain = 0; chain < kChains; ++chain) {
      std::vector<double>& sample = of_chain[chain].emplace_back();
      for (const auto& kind : (*batch)->TakeDraw(chain).theta) sample.insert(sample.end(), kind.begin(), kind.end());
    }
  }
  for (int chain = 0; chain < kChains; ++chain) {
    auto& draws = samples[PointOf(plan->spec, chain)].draws;
    draws.insert(draws.end(), of_chain[chain].begin(), of_chain[chain].end());
  }
  return samples;
}

Samples RunJob(const SamplerSpec& sampler) { return RunSweep(sampler, {})[0]; }

// Descriptions of deviations from the law; empty if it holds. A covariance's error is relative to the deviations.
std::vector<std::string> Misfits(const Samples& samples, const Law& law) {
  std::vector<std::string> misfits;
  const auto check = [&](const std::string& name, auto&& value_of, double expected, double scale) {
    std::vector<double> values;
    for (const auto& draw : samples.draws) values.push_back(value_of(draw));
    const testing::Estimate estimate = testing::EstimateOf(Traces{values, samples.chains});
    if (!(std::abs(estimate.value - expected) <= 4 * estimate.error)) {
      misfits.push_back(name + " is " + std::to_string(estimate.value) + " +- " + std::to_string(estimate.error) +
                        ", law says " + std::to_string(expected));
    } else {
      EXPECT_LE(estimate.error, 0.004 * scale) << name << " fits, but is measured too roughly to mean it";
    }
  };
  const size_t size = law.mean.size();
  for (size_t i = 0; i < size; ++i) {
    check(
        "mean " + std::to_string(i), [&](const auto& s) { return s[i]; }, law.mean[i], std::abs(law.mean[i]));
    for (size_t j = 0; j <= i; ++j) {
      check(
          "covariance " + std::to_string(i) + " " + std::to_string(j),
          [&](const auto& s) { return (s[i] - law.mean[i]) * (s[j] - law.mean[j]); }, law.covariance[i][j],
          std::sqrt(law.covariance[i][i] * law.covariance[j][j]));
    }
  }
  return misfits;
}

TEST(RegressionLaws, SgldUnderMinibatchNoiseHasTheLawOfTheFiniteStep) {
  const Samples samples = RunJob({SgldSpec{}});
  EXPECT_GT(FiniteStepLaw(0).covariance[0][0], 1.15 * FiniteStepLaw(0, 0).covariance[0][0]);  // the noise matters here
  EXPECT_THAT(Misfits(samples, FiniteStepLaw(0)), IsEmpty());
  EXPECT_THAT(Misfits(samples, FiniteStepLaw(0, 0)), Not(IsEmpty())) << "no mini-batch noise";
  const double without_replacement = double{kData} * kData / kBatch * (kData - kBatch) / (kData - 1);
  EXPECT_THAT(Misfits(samples, FiniteStepLaw(0, without_replacement)), Not(IsEmpty()));
  EXPECT_THAT(Misfits(samples, FiniteStepLaw(0, double{kData} * kData / kBatch, 0.98 * kPrecision)), Not(IsEmpty()))
      << "prior 2 % too weak";
}

// One linear layer with a Gaussian likelihood has the same posterior, through the kernels of networks.
TEST(RegressionLaws, LinearNetworkHasTheLawOfLinearRegression) {
  const ModelSpec network = {BuiltinModel{"linear", {}}, GaussianLikelihood{.variance = kNoiseVariance}};
  EXPECT_THAT(Misfits(RunSweep({SgldSpec{}}, {}, network)[0], FiniteStepLaw(0)), IsEmpty());
}

TEST(RegressionLaws, EachPriorPrecisionOfASweepHasItsOwnLaw) {
  constexpr double kNoise = double{kData} * kData / kBatch;
  const SweepSpec sweep = {.prior_precision = {2, 6}};
  const std::vector<Samples> samples = RunSweep({SgldSpec{}}, sweep);
  EXPECT_THAT(Misfits(samples[0], FiniteStepLaw(0, kNoise, 2)), IsEmpty());
  EXPECT_THAT(Misfits(samples[1], FiniteStepLaw(0, kNoise, 6)), IsEmpty());
}

TEST(RegressionLaws, EmcmcUnderMinibatchNoiseHasTheLawOfTheFiniteStep) {
  const Samples samples = RunJob({EmcmcSpec{1 / kCoupling}});
  EXPECT_THAT(Misfits(samples, FiniteStepLaw(kCoupling)), IsEmpty());
  EXPECT_THAT(Misfits(samples, FiniteStepLaw(kCoupling, 0)), Not(IsEmpty())) << "no mini-batch noise";
}

}  // namespace
}  // namespace chainfleet
