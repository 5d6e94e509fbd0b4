// Runs Hamiltonian Monte Carlo and microcanonical Langevin dynamics through the job interface on each analytic
// potential and each likelihood. Compares means and covariances of the draws with closed forms, or with quadrature of
// densities written out here.
//
// A law holds if each moment lies within 4 standard errors, from the spread of the chains' means; the errors are at
// most 0.4 % of a variance, but for networks of torch.export.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "tests/support/exported_files.h"
#include "tests/support/kernel_rows.h"
#include "tests/support/regression_dataset.h"
#include "worker/numerics/arena/device.h"

namespace chainfleet {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kPrior = 1;  // precision
constexpr int64_t kData = 24;

struct Law {
  std::vector<double> mean;        // [n]
  std::vector<double> covariance;  // [n, n]
};

// exp(-U) over a grid of n dimensions, 7 standard deviations on each side. The grids go from exp(-U / 64) over exp(-U /
// 16) on, so that each resolves the next density. The trapezoidal rule is almost exact for densities that end within
// the grid: the last two grids must agree.
class Quadrature {
 public:
  Quadrature(int n, std::function<double(const std::vector<double>&)> energy) : n_(n), energy_(std::move(energy)) {
    law_.mean.assign(n, 0);
    law_.covariance.assign(n * n, 0);
    for (int i = 0; i < n; ++i) law_.covariance[i * n + i] = 1;
    for (const double temperature : {64, 16, 8, 4, 2, 1, 1}) Integrate(temperature, 24);
    const Law coarse = law_;
    Integrate(1, 36);
    for (int i = 0; i < n * n; ++i) {
      const double scale = std::sqrt(law_.covariance[i / n * (n + 1)] * law_.covariance[i % n * (n + 1)]);
      EXPECT_NEAR(law_.covariance[i], coarse.covariance[i], 1e-4 * scale);
    }
  }
  Law law() const { return law_; }

 private:
  void Integrate(double temperature, int points) {
    const Law grid = law_;
    std::vector<double> x(n_), first(n_), second(n_ * n_);
    double mass = 0;
    int64_t cells = 1;
    for (int i = 0; i < n_; ++i) cells *= points;
    const double lowest = energy_(grid.mean);  // keeps exp in range
    for (int64_t cell = 0; cell < cells; ++cell) {
      int64_t rest = cell;
      for (int i = 0; i < n_; ++i, rest /= points) {
        const double at = 14.0 * static_cast<double>(rest % points) / (points - 1) - 7;
        x[i] = grid.mean[i] + at * std::sqrt(grid.covariance[i * n_ + i]);
      }
      const double p = std::exp((lowest - energy_(x)) / temperature);
      mass += p;
      for (int i = 0; i < n_; ++i) {
        first[i] += p * x[i];
        for (int j = 0; j < n_; ++j) second[i * n_ + j] += p * x[i] * x[j];
      }
    }
    for (int i = 0; i < n_; ++i) law_.mean[i] = first[i] / mass;
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j < n_; ++j) {
        law_.covariance[i * n_ + j] = second[i * n_ + j] / mass - law_.mean[i] * law_.mean[j];
      }
    }
  }

  const int n_;
  const std::function<double(const std::vector<double>&)> energy_;
  Law law_;
};

// The draws of each chain: states, and the number of kept steps for which each was held.
using Samples = std::vector<std::vector<Draw>>;

// Long enough to forget any start, and to make neighbouring draws nearly independent.
struct Trajectories {
  double step_size;
  int64_t leapfrog_steps = 5;
  int64_t draws = 96;  // draws of a chain
  int chains = 4096;
  int64_t thinning = 1, burn_in = 32;  // steps
  double temperature = 1;
};

// `module`: the file of a stored network.
Samples Run(const SamplerSpec& sampler, const ModelSpec& model, const Trajectories& run, const Table* table = nullptr,
            const std::shared_ptr<const ModelFile>& module = nullptr) {
  const int chains = run.chains;
  EXPECT_TRUE(InitializeDevice("cpu", 1).ok());
  auto plan = std::make_shared<JobPlan>();
  plan->job = "law-aaaaaa";
  plan->spec.name = "law";
  plan->spec.model = model;
  plan->spec.sampler = sampler;
  plan->spec.schedule = {sampler.own_burn_in() > 0 ? StepScale::kLearningRate : StepScale::kStepSize,
                         ConstantSchedule{run.step_size}};
  plan->spec.temperature = run.temperature;
  plan->spec.burn_in.steps = run.burn_in;
  plan->spec.num_steps = run.burn_in + run.draws * run.thinning;
  plan->spec.collect.every_steps = run.thinning;
  plan->spec.chains = chains;
  plan->spec.seed = 20251121;
  std::shared_ptr<const ResidentDataset> data;
  if (table != nullptr) {
    data = Resident(*table);
    plan->dataset = data->description();
    plan->normalisation = data->description().normalisation;
    plan->spec.dataset = "table";
    plan->spec.prior.kind = GaussianPrior{kPrior};
    plan->spec.batch_size = kData;
  }
  const auto batch = ChainBatch::Create(plan, data, "cpu", module);
  EXPECT_TRUE(batch.ok()) << batch.status();
  for (int chain = 0; chain < chains; ++chain) EXPECT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  Samples samples(chains);
  for (int64_t step = 0; step < *plan->spec.num_steps; ++step) {
    const auto reports = (*batch)->Step();
    EXPECT_TRUE(reports.ok()) << reports.status();
    for (const RowReport& report : *reports) {
      if (report.draw_due) samples[report.chain].push_back((*batch)->TakeDraw(report.chain));
    }
  }
  for (int chain = 0; chain < chains; ++chain) {
    if (auto held = (*batch)->GiveUpHeld(chain)) samples[chain].push_back(*std::move(held));
  }
  return samples;
}

Samples RunHmc(const ModelSpec& model, const Trajectories& run, const Table* table = nullptr,
               const std::shared_ptr<const ModelFile>& module = nullptr) {
  return Run({HmcSpec{.leapfrog_steps = run.leapfrog_steps}}, model, run, table, module);
}

// `step` and `length` are e and L of the dynamics, after some steps of AdamW.
Samples RunMile(const ModelSpec& model, double step, double length, Trajectories run, const Table* table = nullptr) {
  const MileSpec mile{.optimizer_steps = 20, .warm_up_steps = 0, .initial_step = step, .decoherence_length = length};
  run.step_size = 0.01;  // AdamW's
  return Run({mile}, model, run, table);
}

// Treats independent coordinates as chains of one coordinate.
Samples ByCoordinate(const Samples& chains) {
  Samples samples;
  for (const auto& chain : chains) {
    for (size_t i = 0; i < chain[0].theta[0].size(); ++i) {
      std::vector<Draw>& one = samples.emplace_back();
      for (const Draw& draw : chain) {
        one.push_back({.step = draw.step, .weight = draw.weight, .theta = {{draw.theta[0][i]}}});
      }
    }
  }
  return samples;
}

// Descriptions of deviations from the law; empty if it holds.
std::vector<std::string> Misfits(const Samples& samples, const Law& law) {
  std::vector<std::string> misfits;
  const int n = static_cast<int>(law.mean.size());
  const auto check = [&](const std::string& name, auto&& value_of, double expected, double scale) {
    std::vector<double> means;
    for (const auto& chain : samples) {
      double sum = 0, weight = 0;
      for (const Draw& draw : chain) {
        sum += draw.weight * value_of(draw.theta[0]);
        weight += draw.weight;
      }
      means.push_back(sum / weight);
    }
    const testing::Estimate estimate = testing::EstimateOf(means);
    if (!(std::abs(estimate.value - expected) <= 4 * estimate.error)) {
      misfits.push_back(name + " is " + std::to_string(estimate.value) + " +- " + std::to_string(estimate.error) +
                        ", law says " + std::to_string(expected));
    } else {
      EXPECT_LE(estimate.error, 0.004 * std::sqrt(std::max(1.0, 4096.0 / samples.size())) * scale)
          << name << " fits, but is measured too roughly to mean it";
    }
  };
  for (int i = 0; i < n; ++i) {
    const double deviation = std::sqrt(law.covariance[i * n + i]);
    check(
        "mean " + std::to_string(i), [&](const auto& x) { return x[i]; }, law.mean[i], deviation);
    for (int j = 0; j <= i; ++j) {
      check(
          "covariance " + std::to_string(i) + " " + std::to_string(j),
          [&](const auto& x) { return (x[i] - law.mean[i]) * (x[j] - law.mean[j]); }, law.covariance[i * n + j],
          deviation * std::sqrt(law.covariance[j * n + j]));
    }
  }
  return misfits;
}

TEST(PosteriorLaws, GaussianHasItsCovarianceAndMean) {
  const std::vector<double> covariance = {2, 0.8, -0.4, 0.8, 1.5, 0.3, -0.4, 0.3, 1};
  const GaussianPotential gaussian{.dimension = 3, .covariance = covariance, .mean = {1, 0, -2}};
  const Samples samples = RunHmc({gaussian}, {.step_size = 0.3});
  EXPECT_THAT(Misfits(samples, {{1, 0, -2}, covariance}), IsEmpty());
  std::vector<double> wider = covariance;
  wider[0] *= 1.02;
  EXPECT_THAT(Misfits(samples, {{1, 0, -2}, wider}), Not(IsEmpty()));
}

TEST(MicrocanonicalLaws, GaussianHasItsCovarianceAndMean) {
  const std::vector<double> covariance = {2, 0.8, -0.4, 0.8, 1.5, 0.3, -0.4, 0.3, 1};
  const GaussianPotential gaussian{.dimension = 3, .covariance = covariance, .mean = {1, 0, -2}};
  const Samples samples = RunMile({gaussian}, 0.3, 2, {.step_size = 0, .thinning = 6, .burn_in = 200});
  EXPECT_THAT(Misfits(samples, {{1, 0, -2}, covariance}), IsEmpty());
}

TEST(MicrocanonicalLaws, TheTemperatureScalesTheCovariance) {
  const GaussianPotential gaussian{.dimension = 3, .covariance = {2, 0.8, -0.4, 0.8, 1.5, 0.3, -0.4, 0.3, 1}};
  const Samples samples =
      RunMile({gaussian}, 0.2, 1.4, {.step_size = 0, .thinning = 6, .burn_in = 200, .temperature = 0.5});
  EXPECT_THAT(Misfits(samples, {{0, 0, 0}, {1, 0.4, -0.2, 0.4, 0.75, 0.15, -0.2, 0.15, 0.5}}), IsEmpty());
}

TEST(MicrocanonicalLaws, MixtureOfAWholeVectorHasItsMoments) {
  const GaussianMixturePotential mixture{
      .weights = {1, 3}, .means = {-1, 0.5, 1, -0.5}, .stddev = {0.9, 0.7}, .dimension = 2};
  const double mean[] = {0.5, -0.25}, within = (0.81 + 3 * 0.49) / 4;
  const double between[] = {1 - 0.25, -0.5 + 0.125, 0.25 - 0.0625};
  EXPECT_THAT(Misfits(RunMile({mixture}, 0.2, 2, {.step_size = 0, .thinning = 8, .burn_in = 200}),
                      {{mean[0], mean[1]}, {within + between[0], between[1], between[1], within + between[2]}}),
              IsEmpty());
}

TEST(PosteriorLaws, MixtureOfIndependentCoordinatesHasItsMoments) {
  const GaussianMixturePotential mixture{.weights = {1, 3}, .means = {-1, 1.2}, .stddev = {0.8, 0.6}, .dimension = 32};
  const double mean = (-1 + 3 * 1.2) / 4, square = (0.64 + 1 + 3 * (0.36 + 1.44)) / 4;
  const Samples samples = ByCoordinate(RunHmc({mixture}, {.step_size = 0.4, .draws = 48}));
  EXPECT_THAT(Misfits(samples, {{mean}, {square - mean * mean}}), IsEmpty());
}

TEST(PosteriorLaws, MixtureOfAWholeVectorHasItsMoments) {
  const GaussianMixturePotential mixture{
      .weights = {1, 3}, .means = {-1, 0.5, 1, -0.5}, .stddev = {0.9, 0.7}, .dimension = 2};
  const double mean[] = {0.5, -0.25}, within = (0.81 + 3 * 0.49) / 4;
  const double between[] = {1 - 0.25, -0.5 + 0.125, 0.25 - 0.0625};  // midpoints of the components' means
  EXPECT_THAT(Misfits(RunHmc({mixture}, {.step_size = 0.35, .draws = 128}),
                      {{mean[0], mean[1]}, {within + between[0], between[1], between[1], within + between[2]}}),
              IsEmpty());
}

// Standardised, as the kernels see it.
double Input(const Table& table, int64_t i) { return (table.inputs[i] - 0.3) / 1.7; }

// Targets around 0, so that no chain starts where it would reject every step.
Table CentredTable() {
  Table table = MakeTable(kData, 1, false);
  for (float& target : table.targets) target = (target - 3) / 2;
  return table;
}

double PriorEnergy(const std::vector<double>& theta) {
  double squares = 0;
  for (const double x : theta) squares += x * x;
  return kPrior / 2 * squares;
}

// theta: weight of `slope` x, intercept. N(A^-1 X' y / v, A^-1), A = X' X / v + prior precision.
Law LinearLaw(const Table& table, double variance, double slope = 1) {
  double a = kPrior, b = 0, c = kPrior, r = 0, s = 0;
  for (int64_t i = 0; i < kData; ++i) {
    const double x = slope * Input(table, i), y = table.targets[i];
    a += x * x / variance;
    b += x / variance;
    c += 1 / variance;
    r += x * y / variance;
    s += y / variance;
  }
  const double determinant = a * c - b * b;
  return {{(c * r - b * s) / determinant, (a * s - b * r) / determinant},
          {c / determinant, -b / determinant, -b / determinant, a / determinant}};
}

TEST(PosteriorLaws, LinearRegressionHasItsClosedForm) {
  constexpr double kVariance = 0.4;
  const Table table = CentredTable();
  const GaussianLikelihood likelihood{.variance = kVariance};
  for (const ModelSpec& model :
       {ModelSpec{LinearRegressionPotential{kVariance}}, ModelSpec{BuiltinModel{"linear", {}}, likelihood}}) {
    EXPECT_THAT(Misfits(RunHmc(model, {.step_size = 0.04}, &table), LinearLaw(table, kVariance)), IsEmpty());
  }
}

TEST(MicrocanonicalLaws, LinearRegressionHasItsClosedForm) {
  constexpr double kVariance = 0.4;
  const Table table = CentredTable();
  const ModelSpec network{BuiltinModel{"linear", {}}, GaussianLikelihood{.variance = kVariance}};
  EXPECT_THAT(Misfits(RunMile(network, 0.04, 0.3, {.step_size = 0, .thinning = 8, .burn_in = 200}, &table),
                      LinearLaw(table, kVariance)),
              IsEmpty());
}

// theta: weight, intercept.
Law LogisticLaw(const Table& table) {
  return Quadrature(2,
                    [&](const std::vector<double>& theta) {
                      double energy = PriorEnergy(theta);
                      for (int64_t i = 0; i < kData; ++i) {
                        const double logit = theta[0] * Input(table, i) + theta[1];
                        energy += std::log(1 + std::exp(table.labels[i] == 1 ? -logit : logit));
                      }
                      return energy;
                    })
      .law();
}

TEST(PosteriorLaws, LogisticRegressionMatchesQuadrature) {
  const Table table = MakeTable(kData, 1, true);
  EXPECT_THAT(Misfits(RunHmc({LogisticRegressionPotential()}, {.step_size = 0.14}, &table), LogisticLaw(table)),
              IsEmpty());
}

TEST(PosteriorLaws, BernoulliNetworkMatchesQuadrature) {
  const Table table = MakeTable(kData, 1, true);
  EXPECT_THAT(Misfits(RunHmc({BuiltinModel{"linear", {}}, BernoulliLikelihood()}, {.step_size = 0.14}, &table),
                      LogisticLaw(table)),
              IsEmpty());
}

TEST(MicrocanonicalLaws, BernoulliNetworkMatchesQuadrature) {
  const Table table = MakeTable(kData, 1, true);
  EXPECT_THAT(Misfits(RunMile({BuiltinModel{"linear", {}}, BernoulliLikelihood()}, 0.12, 1,
                              {.step_size = 0, .thinning = 8, .burn_in = 200}, &table),
                      LogisticLaw(table)),
              IsEmpty());
}

// A network of torch.export costs more for each chain than a built-in one. The errors are at most 3 % of a variance.
constexpr int kFewChains = 96;

TEST(PosteriorLaws, AnExportedNetworkHasTheLawsOfItsLayer) {
  const auto file = FileOf(ReadExportedData("line.pt2"));
  constexpr double kVariance = 0.4;
  const Table numbers = CentredTable(), classes = MakeTable(kData, 1, true);
  const ModelSpec linear{StoredNetworkModel{"line"}, GaussianLikelihood{.variance = kVariance}};
  EXPECT_THAT(
      Misfits(RunHmc(linear, {.step_size = 0.04, .chains = kFewChains}, &numbers, file), LinearLaw(numbers, kVariance)),
      IsEmpty());
  const ModelSpec logistic{StoredNetworkModel{"line"}, BernoulliLikelihood()};
  EXPECT_THAT(
      Misfits(RunHmc(logistic, {.step_size = 0.14, .chains = kFewChains}, &classes, file), LogisticLaw(classes)),
      IsEmpty());
}

// The file computes a linear head of -2 x, and the -2 is a parameter.
TEST(PosteriorLaws, AHeadAloneHasItsClosedForm) {
  const auto file = FileOf(ReadExportedData("head.pt2"));
  constexpr double kVariance = 0.4;
  const Table table = CentredTable();
  const ModelSpec head{StoredNetworkModel{"head"}, GaussianLikelihood{.variance = kVariance}, {"1.*"}};
  const Samples samples = RunHmc(head, {.step_size = 0.03, .chains = kFewChains}, &table, file);
  EXPECT_THAT(Misfits(samples, LinearLaw(table, kVariance, -2)), IsEmpty());
  EXPECT_THAT(Misfits(samples, LinearLaw(table, kVariance, -2.2)), Not(IsEmpty())) << "the trunk is 10 % off";
}

// The weights are known to 0.1, the log variances to 0.3.
constexpr Trajectories kNarrow = {.step_size = 0.05, .leapfrog_steps = 12};

// theta: weight, bias, log variance.
TEST(PosteriorLaws, LearnedVarianceMatchesQuadrature) {
  const Table table = CentredTable();
  const Law law = Quadrature(3, [&](const std::vector<double>& theta) {
                    double energy = PriorEnergy(theta) + kData * (theta[2] + std::log(2 * std::numbers::pi)) / 2;
                    for (int64_t i = 0; i < kData; ++i) {
                      const double gap = theta[0] * Input(table, i) + theta[1] - table.targets[i];
                      energy += gap * gap * std::exp(-theta[2]) / 2;
                    }
                    return energy;
                  }).law();
  const GaussianLikelihood learned{.variance = {}, .learned = true};
  EXPECT_THAT(Misfits(RunHmc({BuiltinModel{"linear", {}}, learned}, kNarrow, &table), law), IsEmpty());
}

// theta: weights of mean and log variance, then their biases.
TEST(PosteriorLaws, HeteroscedasticGaussianMatchesQuadrature) {
  const Table table = CentredTable();
  const Law law = Quadrature(4, [&](const std::vector<double>& theta) {
                    double energy = PriorEnergy(theta);
                    for (int64_t i = 0; i < kData; ++i) {
                      const double gap = theta[0] * Input(table, i) + theta[2] - table.targets[i];
                      const double log_variance = theta[1] * Input(table, i) + theta[3];
                      energy += (gap * gap * std::exp(-log_variance) + log_variance) / 2;
                    }
                    return energy;
                  }).law();
  EXPECT_THAT(Misfits(RunHmc({BuiltinModel{"linear", {}}, HeteroscedasticGaussianLikelihood()}, kNarrow, &table), law),
              IsEmpty());
}

}  // namespace
}  // namespace chainfleet
