// Gradients of predictions by the inputs against differences of the predictions themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/rng_key.h"
#include "tests/support/one_stack.h"
#include "worker/numerics/predict/predictor.h"

namespace chainfleet {
namespace {

using ::testing::SizeIs;

float Somewhere(uint64_t stream, size_t i) {
  return 2 * UniformFloat(static_cast<uint32_t>(Fold(RngKey{stream}, i).value)) - 1;
}

// Draws of `size` numbers in +-0.8; those from `positive` on are variances.
DrawStack SomeDraws(int64_t size, int64_t positive) {
  DrawStack stack{.chain = {"slopes-aaaaaa", 0}, .kind = DrawKind::kTheta, .weights = {1, 2.5}, .theta = {}};
  for (const uint64_t s : {1, 2}) {
    std::vector<float> theta(static_cast<size_t>(size));
    for (size_t i = 0; i < theta.size(); ++i) {
      theta[i] = 0.8f * Somewhere(s, i);
      if (static_cast<int64_t>(i) >= positive) theta[i] = 1 + std::abs(theta[i]);
    }
    stack.theta.push_back(std::make_shared<const std::vector<float>>(std::move(theta)));
  }
  return stack;
}

InputTensor RowsOf(const std::vector<float>& values, const std::vector<int64_t>& input_shape) {
  std::vector<int64_t> shape = {std::ssize(values) / NumValues(input_shape)};
  shape.insert(shape.end(), input_shape.begin(), input_shape.end());
  return {InputType::kFloat32, shape,
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float))};
}

const std::vector<double>& WeightedSums(const PartialPrediction& sums) {
  return std::holds_alternative<Numbers>(sums.targets()) ? sums.numbers().sum_wm : sums.classes().sum_wp;
}

struct Case {
  const char* name;
  PredictPlan plan;
};

class InputGradients : public ::testing::TestWithParam<Case> {};

TEST_P(InputGradients, AreTheDifferencesOfPredictions) {
  const auto plan = std::make_shared<const PredictPlan>(GetParam().plan);
  const NetworkShape network =
      plan->model.is_network()
          ? *InferNetwork(plan->model, plan->input_shape, NumClasses(plan->targets))
          : NetworkShape{.parameters = *InferParameters(plan->model, plan->input_shape, NumClasses(plan->targets))};
  const int64_t parameters = NumParameters(network.parameters);
  const DrawStack stack = SomeDraws(network.statistics.empty() ? parameters : NumParameters(network.statistics),
                                    network.statistics.empty() ? parameters : network.statistics.back().offset);
  const auto predictor = *Predictor::Create(plan, "cpu");
  const size_t size = static_cast<size_t>(NumValues(plan->input_shape)), rows = 2;
  std::vector<float> x(rows * size);
  for (size_t i = 0; i < x.size(); ++i) x[i] = Somewhere(7, i);
  const auto predict = [&](const std::vector<float>& values) {
    return *predictor->Predict({stack}, RowsOf(values, plan->input_shape), true);
  };
  std::vector<PartialPrediction> sums = predict(x);
  ASSERT_TRUE(predictor->AddGradients({stack}, RowsOf(x, plan->input_shape), &sums).ok());
  const auto outputs = static_cast<size_t>(std::max<int64_t>(NumClasses(plan->targets), 1));
  ASSERT_THAT(sums[0].sum_wg, SizeIs(rows * outputs * size));
  ASSERT_THAT(sums[0].members->gradients, SizeIs(2 * rows * outputs * size));
  constexpr float kStep = 1.0f / 64;
  for (size_t i = 0; i < size; ++i) {
    std::vector<float> right = x, left = x;
    for (size_t row = 0; row < rows; ++row) {
      right[row * size + i] += kStep;
      left[row * size + i] -= kStep;
    }
    const PartialPrediction above = predict(right)[0], below = predict(left)[0];
    for (size_t at = 0; at < rows * outputs; ++at) {
      const double slope = (WeightedSums(above)[at] - WeightedSums(below)[at]) / (2 * kStep);
      EXPECT_NEAR(sums[0].sum_wg[at * size + i], slope, 2e-3 * (1 + std::abs(slope)))
          << "output " << at << ", input " << i;
      double by_draw = 0;
      for (size_t s = 0; s < 2; ++s)
        by_draw += stack.weights[s] * sums[0].members->gradients[(s * rows * outputs + at) * size + i];
      EXPECT_NEAR(sums[0].sum_wg[at * size + i], by_draw, 1e-5 * (1 + std::abs(by_draw)));
    }
  }
}

LayerList Layers() {
  return {{ConvLayer{.out_channels = 3}}, {BatchNormLayer()}, {TanhLayer()}, {FlattenLayer()}, {LinearLayer()}};
}

INSTANTIATE_TEST_SUITE_P(
    Models, InputGradients,
    ::testing::Values(
        Case{"softmax",
             {.job = "j",
              .model = {BuiltinModel{"softmax_regression", {}}},
              .input_shape = {3},
              .targets = Classes{3},
              .normalisation = {{0.5}, {0.25}}}},
        Case{"layers",
             {.job = "j",
              .model = {LayeredModel{Layers()}},
              .input_shape = {2, 5, 5},
              .targets = Classes{2},
              .normalisation = {{0.1, -0.2}, {0.5, 2}}}},
        Case{"bernoulli",
             {.job = "j",
              .model = {BuiltinModel{"linear", {}}, BernoulliLikelihood()},
              .input_shape = {4},
              .targets = Classes{2}}},
        Case{"logistic",
             {.job = "j", .model = {LogisticRegressionPotential()}, .input_shape = {4}, .targets = Classes{2}}},
        Case{"regression",
             {.job = "j",
              .model = {LinearRegressionPotential()},
              .input_shape = {4},
              .targets = Numbers(),
              .normalisation = {{0, 1, 2, 3}, {1, 2, 0, 4}},
              .target_units = {3, 2}}},
        Case{"gaussian",
             {.job = "j",
              .model = {LayeredModel{{{LinearLayer{.outputs = 6}}, {TanhLayer()}, {LinearLayer()}}},
                        GaussianLikelihood{.variance = 2}},
              .input_shape = {4},
              .targets = Numbers(),
              .target_units = {-1, 5}}},
        Case{"heteroscedastic",
             {.job = "j",
              .model = {LayeredModel{{{LinearLayer{.outputs = 6}}, {TanhLayer()}, {LinearLayer()}}},
                        HeteroscedasticGaussianLikelihood()},
              .input_shape = {4},
              .targets = Numbers(),
              .target_units = {-1, 5}}}),
    [](const auto& info) { return info.param.name; });

// d/dx of w x + b is w, in the units of the data set.
TEST(InputGradientsOfALine, AreItsSlope) {
  auto plan = std::make_shared<PredictPlan>();
  plan->job = "line-aaaaaa";
  plan->model.kind = LinearRegressionPotential();
  plan->input_shape = {1};
  plan->targets = Numbers();
  plan->normalisation = {{7}, {2}};
  plan->target_units = {1, 3};
  const auto predictor = *Predictor::Create(plan, "cpu");
  const DrawStack stack{.chain = {"line-aaaaaa", 0},
                        .kind = DrawKind::kTheta,
                        .weights = {1, 3},
                        .theta = {std::make_shared<const std::vector<float>>(std::vector<float>{4, 0.5}),
                                  std::make_shared<const std::vector<float>>(std::vector<float>{-2, 0})}};
  const InputTensor x = RowsOf({1, 2, 3}, {1});
  std::vector<PartialPrediction> sums = *predictor->Predict({stack}, x);
  ASSERT_TRUE(predictor->AddGradients({stack}, x, &sums).ok());
  EXPECT_THAT(sums[0].sum_wg, ::testing::ElementsAre(-3, -3, -3)) << "(1 * 4 + 3 * -2) * 3 / 2";
}

}  // namespace
}  // namespace chainfleet
