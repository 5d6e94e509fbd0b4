#include "worker/numerics/predict/flatness_run.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/network_fixture.h"
#include "tests/support/plain_network.h"
#include "tests/support/regression_dataset.h"
#include "worker/numerics/predict/predictor.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

DrawStack Stack(const std::vector<float>& theta, DrawKind kind = DrawKind::kTheta) {
  return {{"job-a", 2}, kind, {1}, {std::make_shared<const std::vector<float>>(theta)}};
}

std::shared_ptr<const PredictPlan> PlanFor(const ModelSpec& model, const ResidentDataset& data) {
  auto plan = std::make_shared<PredictPlan>();
  plan->job = "job-a";
  plan->model = model;
  plan->input_shape = data.description().input_shape;
  plan->targets = data.description().targets;
  plan->normalisation = data.description().normalisation;
  return plan;
}

std::unique_ptr<Predictor> PredictorFor(const ModelSpec& model, const ResidentDataset& data) {
  auto predictor = Predictor::Create(PlanFor(model, data), "cpu");
  CHAINFLEET_CHECK(predictor.ok()) << predictor.status().ToString();
  return std::move(*predictor);
}

// Measures the flatness over rows [first, first + count), part by part.
Flatness Measured(const ModelSpec& model, const std::shared_ptr<const ResidentDataset>& data, const DrawStack& theta,
                  const DrawStack& theta_a, const FlatnessPlan& plan, int64_t first, int64_t count) {
  auto run = PredictorFor(model, *data)->StartFlatness(plan, theta, theta_a, data, first, count);
  CHAINFLEET_CHECK(run.ok()) << run.status().ToString();
  for (;;) {
    const auto complete = (*run)->Advance();
    CHAINFLEET_CHECK(complete.ok()) << complete.status().ToString();
    if (*complete) return (*run)->result();
  }
}

// E[(g - E g)^2] of rows of doubles, largest first.
std::vector<double> SortedVariances(const std::vector<std::vector<double>>& gradients) {
  const auto n = static_cast<double>(gradients.size());
  std::vector<double> variances;
  for (size_t p = 0; p < gradients[0].size(); ++p) {
    double mean = 0, variance = 0;
    for (const auto& g : gradients) mean += g[p] / n;
    for (const auto& g : gradients) variance += (g[p] - mean) * (g[p] - mean) / n;
    variances.push_back(variance);
  }
  std::sort(variances.rbegin(), variances.rend());
  return variances;
}

// Every rank of a small diagonal is kept.
void ExpectDiagonal(const Flatness& found, const std::vector<double>& wanted, double relative = 1e-5) {
  ASSERT_THAT(found.fisher_values, SizeIs(wanted.size()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found.fisher_ranks[i], static_cast<int64_t>(i + 1));
    EXPECT_NEAR(found.fisher_values[i], wanted[i], relative * wanted[0]) << "rank " << i + 1;
  }
  const double trace = std::accumulate(wanted.begin(), wanted.end(), 0.0);
  EXPECT_NEAR(found.fisher_trace, trace, relative * trace);
}

TEST(FlatnessRun, RanksAreEvenInTheirLogarithmWithTheEndsAmongThem) {
  EXPECT_THAT(FisherRanks(1000, 4), ElementsAre(1, 10, 100, 1000));
  EXPECT_THAT(FisherRanks(5, 256), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(FisherRanks(61706, 1), ElementsAre(1));
  EXPECT_THAT(FisherRanks(1, 8), ElementsAre(1));
  const auto ranks = FisherRanks(61706, 256);
  EXPECT_EQ(ranks.back(), 61706);
  EXPECT_LE(ranks.size(), 256u);
}

double Input(const ResidentDataset& data, int64_t row, int64_t j) {
  const Normalisation& to = data.description().normalisation;
  const auto* x = reinterpret_cast<const float*>(data.input_bytes().data());
  return (x[row * data.row_size() + j] - to.mean[0]) / to.stddev[0];
}

// Residuals y - x w - b of rows [first, first + count) of a table.
std::vector<double> Residuals(const ResidentDataset& data, const std::vector<double>& theta, int64_t first,
                              int64_t count) {
  std::vector<double> residuals;
  for (int64_t i = first; i < first + count; ++i) {
    double residual = data.TargetNumbers()[i] - theta.back();
    for (size_t j = 0; j + 1 < theta.size(); ++j) residual -= Input(data, i, static_cast<int64_t>(j)) * theta[j];
    residuals.push_back(residual);
  }
  return residuals;
}

// -log likelihood (y - x w - b)^2 / 2v + log(2 pi v) / 2, gradient -(y - x w - b) / v (x, 1).
TEST(FlatnessRun, LinearRegressionHasTheClosedForm) {
  const auto data = Resident(MakeTable(200, 3, false));
  const double v = 0.7;
  const ModelSpec model = {PotentialKind(LinearRegressionPotential{.noise_variance = v})};
  const std::vector<float> theta = {0.5f, -1, 2, 1.5f}, theta_a = {-1, 1, 1, 3};
  const FlatnessPlan plan = {.fisher_points = 256, .line_points = 5, .radius = 2, .seed = 4};
  const Flatness flatness = Measured(model, data, Stack(theta), Stack(theta_a, DrawKind::kThetaA), plan, 20, 150);
  EXPECT_EQ(flatness.chain, (ChainId{"job-a", 2}));
  std::vector<std::vector<double>> gradients;
  const auto residuals = Residuals(*data, {0.5, -1, 2, 1.5}, 20, 150);
  for (int64_t i = 0; i < 150; ++i) {
    auto& g = gradients.emplace_back();
    for (int64_t j = 0; j < 3; ++j) g.push_back(-residuals[i] / v * Input(*data, 20 + i, j));
    g.push_back(-residuals[i] / v);
  }
  ExpectDiagonal(flatness, SortedVariances(gradients));
  EXPECT_THAT(flatness.line_positions, ElementsAre(-1, -0.5, 0, 0.5, 1));
  ASSERT_THAT(flatness.anchor_line, SizeIs(5));
  for (size_t i = 0; i < 5; ++i) {
    std::vector<double> at;
    for (size_t p = 0; p < 4; ++p) at.push_back(theta[p] + flatness.line_positions[i] * (theta_a[p] - theta[p]));
    double loss = 0;
    for (const double r : Residuals(*data, at, 20, 150)) {
      loss += (r * r / (2 * v) + std::log(2 * M_PI * v) / 2) / 150;
    }
    EXPECT_NEAR(flatness.anchor_line[i], loss, 1e-5 * loss);
  }
  // Quadratic along any line, and the loss of theta in its middle.
  ASSERT_THAT(flatness.random_line, SizeIs(5));
  const std::vector<double>& line = flatness.random_line;
  EXPECT_NEAR(line[2], flatness.anchor_line[2], 1e-9);
  for (int i : {0, 1}) {
    EXPECT_NEAR(line[i + 3] - 3 * line[i + 2] + 3 * line[i + 1] - line[i], 0, 1e-4 * line[0]);
  }
  EXPECT_GT(std::abs(line[4] - line[2]), 1e-3);
}

// Inputs c e_j, one for each weight: the mean loss is |theta - y / c|^2 c^2 / (2 v n) + ..., so its second derivative
// along a direction says how long that is.
TEST(FlatnessRun, TheRandomDirectionIsAsLongAsAsked) {
  const int64_t d = 6;
  Table table{d, std::vector<float>(d * d), std::vector<float>(d, 0.25f), {}, {{0}, {1}}};
  for (int64_t j = 0; j < d; ++j) table.inputs[j * d + j] = 3;
  const auto data = Resident(table);
  const std::vector<float> theta = {1, -2, 0.5f, 3, 0, -1};
  const double length2 = 1 + 4 + 0.25 + 9 + 1, v = 1;
  const ModelSpec model = {PotentialKind(LinearRegressionPotential{.noise_variance = v, .intercept = false})};
  for (const double radius : {0.5, 1.0, 3.0}) {
    const FlatnessPlan plan = {.line_points = 3, .radius = radius, .seed = 11};
    const Flatness flatness = Measured(model, data, Stack(theta), {}, plan, 0, d);
    EXPECT_THAT(flatness.anchor_line, IsEmpty());
    const double second = flatness.random_line[2] - 2 * flatness.random_line[1] + flatness.random_line[0];
    EXPECT_NEAR(second, radius * radius * length2 * 9 / (v * d), 1e-4 * second);
  }
  const auto line = [&](uint64_t seed) {
    return Measured(model, data, Stack(theta), {}, {.line_points = 3, .seed = seed}, 0, d).random_line;
  };
  EXPECT_EQ(line(1), line(1));
  EXPECT_NE(line(1), line(2));
}

// Gradient (p - y) (x, 1), p the probability of label 1.
TEST(FlatnessRun, LogisticRegressionHasTheClosedForm) {
  const auto data = Resident(MakeTable(100, 2, true));
  const std::vector<float> theta = {0.5f, -1, 0.25f};
  const FlatnessPlan plan = {.line_points = 3};
  const Flatness flatness =
      Measured({PotentialKind(LogisticRegressionPotential())}, data, Stack(theta), {}, plan, 0, 100);
  std::vector<std::vector<double>> gradients;
  double loss = 0;
  for (int64_t i = 0; i < 100; ++i) {
    const double x0 = Input(*data, i, 0), x1 = Input(*data, i, 1), y = data->TargetNumbers()[i];
    const double p = 1 / (1 + std::exp(-(0.5 * x0 - x1 + 0.25)));
    gradients.push_back({(p - y) * x0, (p - y) * x1, p - y});
    loss -= std::log(y > 0 ? p : 1 - p) / 100;
  }
  ExpectDiagonal(flatness, SortedVariances(gradients));
  EXPECT_NEAR(flatness.random_line[1], loss, 1e-6);
}

// A linear network whose log variance s is learned: gradient (-r / v x, -r / v, (1 - r^2 / v) / 2), v = exp(s).
TEST(FlatnessRun, ALearnedVarianceCountsAsAParameter) {
  const auto data = Resident(MakeTable(60, 2, false));
  const std::vector<float> theta = {0.5f, -1, 0.25f, 0.5f};
  const ModelSpec model = {BuiltinModel{"linear", {}}, GaussianLikelihood{.variance = {}, .learned = true}};
  const Flatness flatness = Measured(model, data, Stack(theta), {}, {.line_points = 3}, 0, 60);
  const double v = std::exp(0.5);
  std::vector<std::vector<double>> gradients;
  const auto residuals = Residuals(*data, {0.5, -1, 0.25}, 0, 60);
  for (int64_t i = 0; i < 60; ++i) {
    const double r = residuals[i];
    gradients.push_back({-r / v * Input(*data, i, 0), -r / v * Input(*data, i, 1), -r / v, (1 - r * r / v) / 2});
  }
  ExpectDiagonal(flatness, SortedVariances(gradients));
}

std::vector<float> RandomDraw(int64_t size, float width = 0.2f) {
  std::vector<float> draw;
  for (int64_t i = 0; i < size; ++i) {
    draw.push_back(
        width * (UniformFloat(RandomBlock(RngKey{3}, RngStream::kInit, 0, static_cast<uint32_t>(i)).word[0]) - 0.5f));
  }
  return draw;
}

// Each example's gradient by autograd in double through the plain network, one example at a time.
std::vector<std::vector<double>> PlainGradients(const LayerList& layers, const NetworkShape& shape,
                                                const std::vector<float>& draw, const ResidentDataset& data,
                                                int64_t count, double* mean_loss) {
  const auto tensors = [&](const std::vector<ParameterShape>& shapes) {
    std::vector<at::Tensor> values;
    for (const ParameterShape& tensor : shapes) {
      values.push_back(
          at::from_blob(const_cast<float*>(draw.data()) + tensor.offset, tensor.shape, at::kFloat).to(at::kDouble));
    }
    return values;
  };
  std::vector<std::vector<double>> gradients;
  *mean_loss = 0;
  for (int64_t i = 0; i < count; ++i) {
    testing::PlainNetwork plain;
    plain.parameters = tensors(shape.parameters);
    plain.statistics = tensors(shape.statistics);
    for (at::Tensor& parameter : plain.parameters) parameter.requires_grad_(true);
    std::vector<double> x;
    for (int64_t f = 0; f < data.row_size(); ++f) {
      x.push_back((static_cast<uint8_t>(data.input_bytes()[i * data.row_size() + f]) / 255.0 - 0.5) / 0.29);
    }
    std::vector<int64_t> one = {1};
    one.insert(one.end(), shape.input_shape.begin(), shape.input_shape.end());
    const at::Tensor logits = plain.Logits(layers, at::tensor(x, at::kDouble).view(one)).squeeze(0);
    const at::Tensor loss = -at::log_softmax(logits, -1)[std::get<std::vector<int32_t>>(data.targets())[i]];
    loss.backward();
    *mean_loss += loss.item<double>() / static_cast<double>(count);
    std::vector<at::Tensor> flat;
    for (const at::Tensor& parameter : plain.parameters) flat.push_back(parameter.grad().flatten());
    const at::Tensor gradient = at::cat(flat);
    gradients.emplace_back(gradient.const_data_ptr<double>(), gradient.const_data_ptr<double>() + gradient.numel());
  }
  return gradients;
}

TEST(FlatnessRun, Lenet5MatchesAutogradExampleByExample) {
  const int64_t n = 37;  // no whole number of blocks
  const auto data = SyntheticImages(n);
  const ModelSpec model = {BuiltinModel{"lenet5", {}}};
  const NetworkShape shape = *InferNetwork(model, {1, 28, 28}, 10);
  const std::vector<float> draw = RandomDraw(NumParameters(shape.parameters));
  const Flatness flatness = Measured(model, data, Stack(draw), {}, {.line_points = 3}, 0, n);
  double loss = 0;
  const auto wanted = SortedVariances(PlainGradients(LayersOf(model), shape, draw, *data, n, &loss));
  ASSERT_GT(flatness.fisher_ranks.size(), 150u);
  for (size_t i = 0; i < flatness.fisher_ranks.size(); ++i) {
    const double value = wanted[flatness.fisher_ranks[i] - 1];
    EXPECT_NEAR(flatness.fisher_values[i], value, 1e-4 * value + 1e-7 * wanted[0]) << flatness.fisher_ranks[i];
  }
  const double trace = std::accumulate(wanted.begin(), wanted.end(), 0.0);
  EXPECT_NEAR(flatness.fisher_trace, trace, 1e-5 * trace);
  EXPECT_NEAR(flatness.random_line[1], loss, 1e-5 * loss);
}

// An example's gradient goes through the draw's own means and variances, not those of a batch of one.
TEST(FlatnessRun, BatchNormUsesTheDrawsStatistics) {
  const int64_t n = 9;
  const auto data = SyntheticImages(n, {2, 6, 6}, 4);
  const LayerList layers = {
      {ConvLayer{.out_channels = 3, .padding = 1}}, {BatchNormLayer{}}, {ReluLayer{}}, {LinearLayer{}}};
  const ModelSpec model = {LayeredModel{layers}};
  const NetworkShape shape = *InferNetwork(model, {2, 6, 6}, 4);
  std::vector<float> draw = RandomDraw(NumParameters(shape.statistics), 0.8f);
  for (size_t k = 1; k < shape.statistics.size(); k += 2) {  // variances
    for (int64_t i = 0; i < NumValues(shape.statistics[k].shape); ++i) draw[shape.statistics[k].offset + i] += 1;
  }
  const Flatness flatness = Measured(model, data, Stack(draw), {}, {.line_points = 3}, 0, n);
  double loss = 0;
  const auto wanted = SortedVariances(PlainGradients(layers, shape, draw, *data, n, &loss));
  for (size_t i = 0; i < flatness.fisher_ranks.size(); ++i) {
    EXPECT_NEAR(flatness.fisher_values[i], wanted[flatness.fisher_ranks[i] - 1], 1e-5 * wanted[0]);
  }
  EXPECT_NEAR(flatness.random_line[1], loss, 1e-5 * loss);
}

TEST(FlatnessRun, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto data = SyntheticImages(70);
  const ModelSpec model = {BuiltinModel{"lenet5", {}}};
  const auto draw = RandomDraw(NumParameters(InferNetwork(model, {1, 28, 28}, 10)->parameters));
  const int before = at::get_num_threads();
  std::vector<Flatness> found;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    found.push_back(Measured(model, data, Stack(draw), Stack(RandomDraw(std::ssize(draw), 0.1f), DrawKind::kThetaA),
                             {.line_points = 3}, 0, 70));
  }
  at::set_num_threads(before);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
}

TEST(FlatnessRun, ValuesThatAreNoNumbersComeFirst) {
  const auto data = Resident(MakeTable(20, 2, false));
  const float none = std::nanf("");
  const Flatness flatness =
      Measured({PotentialKind(LinearRegressionPotential())}, data, Stack({none, 1, 1}), {}, {.line_points = 3}, 0, 20);
  EXPECT_TRUE(std::isnan(flatness.fisher_values[0]));
  EXPECT_TRUE(std::isnan(flatness.fisher_trace));
  EXPECT_TRUE(std::isnan(flatness.random_line[1]));
}

TEST(FlatnessRun, RefusesWhatItCannotMeasure) {
  const auto data = Resident(MakeTable(20, 2, false));
  const auto predictor = PredictorFor({PotentialKind(LinearRegressionPotential())}, *data);
  const DrawStack theta = Stack({1, 1, 1});
  const auto refusal = [&](const FlatnessPlan& plan, const DrawStack& of, const DrawStack& to,
                           const std::shared_ptr<const ResidentDataset>& over, int64_t first, int64_t count) {
    const auto run = predictor->StartFlatness(plan, of, to, over, first, count);
    EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(run.status().message());
  };
  EXPECT_THAT(refusal({.fisher_points = 0}, theta, {}, data, 0, 20), HasSubstr("flatness.fisher_points"));
  EXPECT_THAT(refusal({.line_points = 1}, theta, {}, data, 0, 20), HasSubstr("flatness.line_points"));
  EXPECT_THAT(refusal({.radius = -1}, theta, {}, data, 0, 20), HasSubstr("flatness.radius"));
  EXPECT_THAT(refusal({.radius = INFINITY}, theta, {}, data, 0, 20), HasSubstr("flatness.radius"));
  EXPECT_THAT(refusal({}, theta, {}, data, 15, 6), HasSubstr("has 20 rows, asked for 6 from 15"));
  EXPECT_THAT(refusal({}, theta, {}, data, 0, 0), HasSubstr("1 to 1024 rows"));
  EXPECT_THAT(refusal({}, Stack({1, 1}), {}, data, 0, 20), HasSubstr("has 2 parameters, the model of job job-a has 3"));
  EXPECT_THAT(refusal({}, theta, Stack({1, 1}), data, 0, 20), HasSubstr("has 2 parameters"));
  EXPECT_THAT(refusal({}, {}, {}, data, 0, 20), HasSubstr("no draw"));
  EXPECT_THAT(refusal({}, theta, {}, Resident(MakeTable(20, 2, true)), 0, 20), HasSubstr("has labels"));
  EXPECT_THAT(refusal({}, theta, {}, Resident(MakeTable(20, 3, false)), 0, 20), HasSubstr("are [3]"));
  const auto large = Resident(MakeTable(1100, 2, false));
  EXPECT_THAT(refusal({}, theta, {}, large, 0, 1025), HasSubstr("1 to 1024 rows, asked for 1025"));
}

}  // namespace
}  // namespace chainfleet
