// Tests Laplace's approximation through the job interface: draws around the end of training have the covariance T (H +
// lambda I)^-1, with H computed in double by plain formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/cholesky.h"
#include "tests/support/regression_dataset.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/batch/checkpoint_codec.h"

namespace chainfleet {
namespace {

using Values = std::vector<double>;

constexpr double kTemperature = 0.5, kPrecision = 1.5;

// A square matrix, row by row.
struct Matrix {
  explicit Matrix(int64_t size, double diagonal = 0) : size(size), value(size * size) {
    for (int64_t i = 0; i < size; ++i) at(i, i) = diagonal;
  }
  double& at(int64_t i, int64_t j) { return value[i * size + j]; }
  double at(int64_t i, int64_t j) const { return value[i * size + j]; }
  // + weight x x'
  void Add(double weight, const Values& x) {
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) at(i, j) += weight * x[i] * x[j];
    }
  }
  int64_t size;
  Values value;
};

struct Outcome {
  Values theta;  // at the end of training
  std::vector<std::vector<float>> draws;
  std::optional<double> log_evidence;
};

Outcome DrawFrom(
    const ModelSpec& model, CurvatureStructure structure, const std::shared_ptr<const ResidentDataset>& data,
    int64_t num_draws, const std::function<void(JobSpec*)>& change = [](JobSpec*) {}) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "laplace-aaaaaa";
  JobSpec& spec = plan->spec;
  spec.name = "laplace";
  spec.model = model;
  spec.sampler = {LaplaceSpec{.structure = structure, .momentum = 0.5, .draws = num_draws}};
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.002}};
  spec.temperature = kTemperature;
  spec.num_steps = 20;
  spec.batch_size = 7;  // the last slice of the pass is shorter
  spec.seed = 5;
  if (data != nullptr) {
    spec.dataset = "data";
    spec.prior.kind = GaussianPrior{kPrecision};
    plan->dataset = data->description();
    plan->normalisation = data->description().normalisation;
  }
  change(&spec);
  (void)InitializeDevice("cpu", 1);  // threads would only wait for each other on such a small chain
  const auto batch = ChainBatch::Create(plan, data, "cpu");
  EXPECT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE((*batch)->AddChain(0, std::nullopt).ok());
  Outcome outcome;
  for (bool done = false; !done;) {
    const auto reports = (*batch)->Step();
    EXPECT_TRUE(reports.ok() && reports->front().finite) << reports.status();
    if (reports->front().draw_due) outcome.draws.push_back((*batch)->TakeDraw(0).theta[0]);
    done = reports->front().done;
    if (const auto& report = reports->front().stats.report) outcome.log_evidence = report->log_evidence;
  }
  const auto end = DecodeCheckpoint((*batch)->SaveResumePoint(0));
  outcome.theta.assign(end->arenas[0].begin(), end->arenas[0].end());
  return outcome;
}

// Every entry of the covariance within 5 standard errors, and the mean of the squared distance in the metric of the
// precision, which is D T, within 4: its standard error is below 0.4 %.
void ExpectCovariance(const Outcome& outcome, const Matrix& precision) {
  const auto factor = CholeskyFactor(precision.value, precision.size);
  ASSERT_TRUE(factor.has_value());
  const Values covariance = InverseFromCholesky(*factor, precision.size);
  const int64_t d = precision.size;
  const auto draws = static_cast<double>(outcome.draws.size());
  Matrix found(d);
  double distance = 0;
  for (const std::vector<float>& draw : outcome.draws) {
    Values gap(d);
    for (int64_t i = 0; i < d; ++i) gap[i] = draw[i] - outcome.theta[i];
    found.Add(1 / draws, gap);
    for (int64_t i = 0; i < d; ++i) {
      for (int64_t j = 0; j < d; ++j) distance += gap[i] * precision.at(i, j) * gap[j] / draws;
    }
  }
  const double law = static_cast<double>(d) * kTemperature,
               error = law * std::sqrt(2 / (static_cast<double>(d) * draws));
  EXPECT_LT(error, 0.004 * law);
  EXPECT_NEAR(distance, law, 4 * error);
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      const double c = kTemperature * covariance[i * d + j];
      const double of_both = kTemperature * kTemperature * covariance[i * d + i] * covariance[j * d + j];
      EXPECT_NEAR(found.at(i, j), c, 5 * std::sqrt((of_both + c * c) / draws)) << i << ", " << j;
    }
  }
}

// Returns the inputs of example i, with 1 for the intercept.
Values InputsOf(const Table& table, int64_t i) {
  Values x;
  for (int64_t j = 0; j < table.width; ++j) x.push_back((table.inputs[i * table.width + j] - 0.3) / 1.7);
  x.push_back(1);
  return x;
}

TEST(LaplaceLaws, FullOfALinearRegressionIsItsPosteriorCovariance) {
  const Table table = MakeTable(60, 29, false);
  Matrix precision(30, kPrecision);
  for (int64_t i = 0; i < 60; ++i) precision.Add(1 / 4.0, InputsOf(table, i));
  ExpectCovariance(
      DrawFrom({LinearRegressionPotential{.noise_variance = 4}}, CurvatureStructure::kFull, Resident(table), 5000),
      precision);
}

// log N(y; 0, v I + X X' / lambda), from its N x N covariance.
double LogEvidenceOfRegression(const Table& table, int64_t num_rows, double variance) {
  Matrix covariance(num_rows, variance);
  for (int64_t i = 0; i < num_rows; ++i) {
    for (int64_t j = 0; j < num_rows; ++j) {
      const Values x = InputsOf(table, i), other = InputsOf(table, j);
      for (size_t k = 0; k < x.size(); ++k) covariance.at(i, j) += x[k] * other[k] / kPrecision;
    }
  }
  const auto factor = CholeskyFactor(covariance.value, num_rows);
  EXPECT_TRUE(factor.has_value());
  const Values inverse = InverseFromCholesky(*factor, num_rows);
  double log_density = -static_cast<double>(num_rows) / 2 * std::log(2 * M_PI);
  for (int64_t i = 0; i < num_rows; ++i) {
    log_density -= std::log((*factor)[i * num_rows + i]);
    for (int64_t j = 0; j < num_rows; ++j) {
      log_density -= table.targets[i] * inverse[i * num_rows + j] * table.targets[j] / 2;
    }
  }
  return log_density;
}

void UntilConverged(JobSpec* spec) {
  spec->batch_size = 60;
  spec->num_steps = 3000;
}

// The posterior is a Gaussian, so Laplace's approximation is exact; the temperature has no influence.
TEST(LaplaceLaws, EvidenceOfALinearRegressionIsExact) {
  const Table table = MakeTable(60, 29, false);
  const double exact = LogEvidenceOfRegression(table, 60, 4);
  const ModelSpec network = {BuiltinModel{"linear", {}}, GaussianLikelihood{.variance = 4}};
  for (const ModelSpec& model : {ModelSpec{LinearRegressionPotential{.noise_variance = 4}}, network}) {
    const Outcome outcome = DrawFrom(model, CurvatureStructure::kFull, Resident(table), 1, UntilConverged);
    ASSERT_TRUE(outcome.log_evidence.has_value());
    EXPECT_NEAR(*outcome.log_evidence, exact, 1e-3);
    // For one output the Kronecker product is the whole matrix. The diagonal ignores correlations, so its evidence is
    // lower.
    EXPECT_NEAR(*DrawFrom(network, CurvatureStructure::kKronecker, Resident(table), 1, UntilConverged).log_evidence,
                exact, 1e-3);
    EXPECT_LT(*DrawFrom(network, CurvatureStructure::kDiagonal, Resident(table), 1, UntilConverged).log_evidence,
              exact);
  }
}

// AdamW, too, must end at argmin U, however the prior is written: as one precision, or with a layer of its own.
// Decoupled weight decay ends elsewhere and loses about 10 nats here.
TEST(LaplaceLaws, EvidenceAfterAdamwIsExactHoweverThePriorIsWritten) {
  const Table table = MakeTable(60, 29, false);
  const double exact = LogEvidenceOfRegression(table, 60, 4);
  for (const GaussianPrior& prior : {GaussianPrior{kPrecision}, GaussianPrior{kPrecision, {{"weights", kPrecision}}}}) {
    const Outcome outcome = DrawFrom(
        {LinearRegressionPotential{.noise_variance = 4}}, CurvatureStructure::kFull, Resident(table), 1,
        [&](JobSpec* spec) {
          UntilConverged(spec);
          spec->sampler = {LaplaceSpec{
              .structure = CurvatureStructure::kFull, .momentum = 0.5, .draws = 1, .optimizer = Optimizer::kAdamw}};
          spec->schedule = {StepScale::kLearningRate, LinearSchedule{0.05, 0}};
          spec->prior.kind = prior;
        });
    ASSERT_TRUE(outcome.log_evidence.has_value());
    EXPECT_NEAR(*outcome.log_evidence, exact, 1e-3) << prior.layers.size() << " layers with a prior of their own";
  }
}

// The evidence of an analytic potential is the log of the integral of exp(-U): log (2 pi)^(D/2) det(covariance)^(1/2).
TEST(LaplaceLaws, EvidenceOfAGaussianIsItsNormalisingConstant) {
  const Outcome outcome = DrawFrom({GaussianPotential{.dimension = 2, .covariance = {4, 2, 2, 3}, .mean = {1, -1}}},
                                   CurvatureStructure::kFull, nullptr, 1, [](JobSpec* spec) {
                                     spec->schedule = {StepScale::kStepSize, ConstantSchedule{0.2}};
                                     spec->num_steps = 500;
                                   });
  EXPECT_NEAR(outcome.log_evidence.value(), std::log(2 * M_PI) + std::log(8.0) / 2, 1e-6);
}

TEST(LaplaceLaws, FullOfALogisticRegressionIsItsHessian) {
  const Table table = MakeTable(60, 29, true);
  const Outcome outcome = DrawFrom({LogisticRegressionPotential{}}, CurvatureStructure::kFull, Resident(table), 5000);
  Matrix precision(30, kPrecision);
  for (int64_t i = 0; i < 60; ++i) {
    const Values x = InputsOf(table, i);
    double logit = 0;
    for (int64_t j = 0; j < 30; ++j) logit += x[j] * outcome.theta[j];
    const double p = 1 / (1 + std::exp(-logit));
    precision.Add(p * (1 - p), x);
  }
  ExpectCovariance(outcome, precision);
}

// One linear layer equals the regression, through the curvature of networks.
TEST(LaplaceLaws, FullOfALinearNetworkOfNormalsIsItsPosteriorCovariance) {
  const Table table = MakeTable(60, 29, false);
  Matrix precision(30, kPrecision);
  for (int64_t i = 0; i < 60; ++i) precision.Add(1 / 4.0, InputsOf(table, i));
  const ModelSpec network = {BuiltinModel{"linear", {}}, GaussianLikelihood{.variance = 4}};
  ExpectCovariance(DrawFrom(network, CurvatureStructure::kFull, Resident(table), 5000), precision);
}

// The learned log variance s is the last parameter: information 1/2 for each example, and exp(-s) for the means.
TEST(LaplaceLaws, FullWithALearnedVarianceCountsItsInformation) {
  const Table table = MakeTable(60, 29, false);
  const ModelSpec network = {BuiltinModel{"linear", {}}, GaussianLikelihood{.variance = {}, .learned = true}};
  const Outcome outcome = DrawFrom(network, CurvatureStructure::kFull, Resident(table), 5000);
  Matrix precision(31, kPrecision);
  for (int64_t i = 0; i < 60; ++i) {
    Values x = InputsOf(table, i);
    x.push_back(0);
    precision.Add(std::exp(-outcome.theta[30]), x);
  }
  precision.at(30, 30) += 60 / 2.0;
  ExpectCovariance(outcome, precision);
}

TEST(LaplaceLaws, KroneckerOfABernoulliLayerMatchesItsInputsAndOutput) {
  const Table table = MakeTable(60, 29, true);
  const ModelSpec network = {BuiltinModel{"linear", {}}, BernoulliLikelihood()};
  const Outcome outcome = DrawFrom(network, CurvatureStructure::kKronecker, Resident(table), 5000);
  Matrix inputs(30), precision(30, kPrecision);
  double information = 0;
  for (int64_t i = 0; i < 60; ++i) {
    const Values x = InputsOf(table, i);
    double logit = 0;
    for (int64_t j = 0; j < 30; ++j) logit += x[j] * outcome.theta[j];
    information += 1 / (2 + std::exp(logit) + std::exp(-logit)) / 60;
    inputs.Add(1, x);
  }
  for (int64_t i = 0; i < 30; ++i) {
    for (int64_t j = 0; j < 30; ++j) precision.at(i, j) += information * inputs.at(i, j);
  }
  ExpectCovariance(outcome, precision);
}

TEST(LaplaceLaws, FullOfACorrelatedGaussianIsThatGaussian) {
  const Outcome outcome = DrawFrom({GaussianPotential{.dimension = 3, .covariance = {4, 2, 0.5, 2, 3, 1, 0.5, 1, 2}}},
                                   CurvatureStructure::kFull, nullptr, 50'000);
  const auto factor = CholeskyFactor({4, 2, 0.5, 2, 3, 1, 0.5, 1, 2}, 3);
  Matrix precision(3);
  precision.value = InverseFromCholesky(*factor, 3);
  ExpectCovariance(outcome, precision);
}

TEST(LaplaceLaws, DiagonalOfAnAlignedQuadraticIsTheQuadratic) {
  constexpr int64_t kDimension = 400'000;
  const Outcome outcome =
      DrawFrom({GaussianPotential{.dimension = kDimension, .precision = 3}}, CurvatureStructure::kDiagonal, nullptr, 1);
  double squares = 0;
  for (int64_t i = 0; i < kDimension; ++i) squares += std::pow(outcome.draws[0][i] - outcome.theta[i], 2);
  const double law = kTemperature / 3;
  EXPECT_NEAR(squares / kDimension, law, 4 * law * std::sqrt(2.0 / kDimension));
}

// One linear layer under a softmax: 4x4 images, 5 classes.
struct SoftmaxLayer {
  static constexpr int64_t kExamples = 40, kInputs = 16, kClasses = 5, kSize = kClasses * (kInputs + 1);
  const std::shared_ptr<const ResidentDataset> data = SyntheticImages(kExamples, {1, 4, 4}, kClasses);
  const ModelSpec model = {BuiltinModel{"softmax_regression", {}}};

  // Returns the inputs of example i, then 1.
  Values Inputs(int64_t i) const {
    Values x;
    for (int64_t j = 0; j < kInputs; ++j) {
      x.push_back((static_cast<uint8_t>(data->input_bytes()[i * kInputs + j]) / 255.0 - 0.5) / 0.29);
    }
    x.push_back(1);
    return x;
  }
  // Returns the position in theta of the weight from input j to class k; input kInputs is the bias.
  static int64_t Position(int64_t k, int64_t j) { return j < kInputs ? k * kInputs + j : kClasses * kInputs + k; }

  // Sums `add` over the columns s of a root of H_i, sqrt(p_k) (e_k - p).
  static void ForEachColumn(const Values& x, const Values& theta, const std::function<void(const Values& s)>& add) {
    Values p(kClasses);
    double sum = 0;
    for (int64_t k = 0; k < kClasses; ++k) {
      double logit = 0;
      for (int64_t j = 0; j <= kInputs; ++j) logit += theta[Position(k, j)] * x[j];
      sum += p[k] = std::exp(logit);
    }
    for (double& value : p) value /= sum;
    for (int64_t k = 0; k < kClasses; ++k) {
      Values s = p;
      for (double& value : s) value *= -std::sqrt(p[k]);
      s[k] += std::sqrt(p[k]);
      add(s);
    }
  }
};

TEST(LaplaceLaws, KroneckerOfALinearLayerMatchesItsInputsAndOutputs) {
  const SoftmaxLayer layer;
  const Outcome outcome = DrawFrom(layer.model, CurvatureStructure::kKronecker, layer.data, 2000);
  Matrix inputs(layer.kInputs + 1), outputs(layer.kClasses), precision(layer.kSize, kPrecision);
  for (int64_t i = 0; i < layer.kExamples; ++i) {
    const Values x = layer.Inputs(i);
    inputs.Add(1, x);
    layer.ForEachColumn(x, outcome.theta, [&](const Values& s) { outputs.Add(1, s); });
  }
  for (int64_t a = 0; a < layer.kSize; ++a) {
    for (int64_t b = 0; b < layer.kSize; ++b) {
      const int64_t k = a / (layer.kInputs + 1), j = a % (layer.kInputs + 1);
      const int64_t l = b / (layer.kInputs + 1), m = b % (layer.kInputs + 1);
      precision.at(layer.Position(k, j), layer.Position(l, m)) +=
          outputs.at(k, l) * inputs.at(j, m) / static_cast<double>(layer.kExamples);
    }
  }
  ExpectCovariance(outcome, precision);
}

TEST(LaplaceLaws, FullAndDiagonalOfALinearLayerAreItsGaussNewtonMatrix) {
  const SoftmaxLayer layer;
  for (const CurvatureStructure structure : {CurvatureStructure::kFull, CurvatureStructure::kDiagonal}) {
    const Outcome outcome = DrawFrom(layer.model, structure, layer.data, 2000);
    Matrix precision(layer.kSize, kPrecision);
    for (int64_t i = 0; i < layer.kExamples; ++i) {
      const Values x = layer.Inputs(i);
      layer.ForEachColumn(x, outcome.theta, [&](const Values& s) {
        Values gradient(layer.kSize);
        for (int64_t k = 0; k < layer.kClasses; ++k) {
          for (int64_t j = 0; j <= layer.kInputs; ++j) gradient[layer.Position(k, j)] = s[k] * x[j];
        }
        if (structure == CurvatureStructure::kFull) return precision.Add(1, gradient);
        for (int64_t a = 0; a < layer.kSize; ++a) precision.at(a, a) += gradient[a] * gradient[a];
      });
    }
    ExpectCovariance(outcome, precision);
  }
}

}  // namespace
}  // namespace chainfleet
