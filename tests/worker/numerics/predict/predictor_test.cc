#include "worker/numerics/predict/predictor.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/network_fixture.h"
#include "tests/support/one_stack.h"
#include "tests/support/regression_dataset.h"
#include "worker/numerics/dataset/corrupted_images.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const PredictPlan> Plan(const std::string& model, std::vector<int64_t> input_shape, int64_t classes,
                                        Normalisation normalisation) {
  auto plan = std::make_shared<PredictPlan>();
  plan->job = "fashion-aaaaaa";
  plan->model.kind = BuiltinModel{model, {}};
  plan->input_shape = std::move(input_shape);
  plan->targets = Classes{classes};
  plan->normalisation = std::move(normalisation);
  return plan;
}

std::unique_ptr<Predictor> MakePredictor(const std::shared_ptr<const PredictPlan>& plan) {
  auto predictor = Predictor::Create(plan, "cpu");
  CHAINFLEET_CHECK(predictor.ok()) << predictor.status().ToString();
  return std::move(*predictor);
}

// A network of two inputs and three classes: logits = W x + b, layout order W then b.
DrawStack TwoDraws() {
  DrawStack draws;
  draws.chain = {"fashion-aaaaaa", 3};
  draws.kind = DrawKind::kThetaA;
  draws.weights = {1, 2.5};
  draws.theta = {
      std::make_shared<const std::vector<float>>(std::vector<float>{1, 0, 0, 1, -1, -1, 0.5, 0, 0}),
      std::make_shared<const std::vector<float>>(std::vector<float>{-2, 0, 0, 3, 1, 1, 0, 0, 0.25}),
  };
  return draws;
}

InputTensor Floats(const std::vector<float>& values, std::vector<int64_t> shape) {
  return {InputType::kFloat32, std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float))};
}

std::vector<double> SoftmaxByHand(const std::vector<float>& theta, const float* x) {
  std::vector<double> p(3);
  double sum = 0;
  for (int k = 0; k < 3; ++k) sum += p[k] = std::exp(theta[2 * k] * x[0] + theta[2 * k + 1] * x[1] + theta[6 + k]);
  for (double& value : p) value /= sum;
  return p;
}

TEST(Predictor, SumsAreThoseWorkedOutByHand) {
  const auto predictor = MakePredictor(Plan("softmax_regression", {2}, 3, {}));
  const DrawStack draws = TwoDraws();
  const std::vector<float> x = {1, 2, -1, 0.5, 0, 0};
  const auto sums = Predict(predictor, draws, Floats(x, {3, 2}), false);
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_EQ(sums->chain, draws.chain);
  EXPECT_EQ(sums->kind, DrawKind::kThetaA);
  EXPECT_EQ(sums->num_draws, 2);
  EXPECT_EQ(sums->num_rows, 3);
  EXPECT_EQ(sums->targets(), Targets(Classes{3}));
  EXPECT_EQ(sums->sum_w, 3.5);
  EXPECT_EQ(sums->sum_w2, 7.25);
  for (int row = 0; row < 3; ++row) {
    std::vector<double> wp(3), wp2(3), votes(3);
    double wh = 0;
    for (int s = 0; s < 2; ++s) {
      const std::vector<double> p = SoftmaxByHand(*draws.theta[s], x.data() + 2 * row);
      for (int k = 0; k < 3; ++k) {
        wp[k] += draws.weights[s] * p[k];
        wp2[k] += draws.weights[s] * p[k] * p[k];
        wh -= draws.weights[s] * p[k] * std::log(p[k]);
      }
      votes[std::max_element(p.begin(), p.end()) - p.begin()] += draws.weights[s];
    }
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR(sums->classes().sum_wp[3 * row + k], wp[k], 1e-6);
      EXPECT_NEAR(sums->classes().sum_wp2[3 * row + k], wp2[k], 1e-6);
      EXPECT_EQ(sums->classes().votes[3 * row + k], votes[k]);
    }
    EXPECT_NEAR(sums->classes().sum_wh[row], wh, 1e-6);
  }
  EXPECT_TRUE(sums->classes().draw_hits.empty());
}

TEST(Predictor, AnswersNotANumberWithAnEntropyThatIsNone) {
  const auto predictor = MakePredictor(Plan("softmax_regression", {2}, 3, {}));
  const auto sums = Predict(predictor, TwoDraws(), Floats({NAN, 2, 1, 2}, {2, 2}), false);
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_TRUE(std::isnan(sums->classes().sum_wh[0]));
  EXPECT_TRUE(std::isfinite(sums->classes().sum_wh[1]));
}

TEST(Predictor, ScoresEachDrawAgainstTheLabels) {
  const auto data = SyntheticImages(10, {2}, 3);
  const auto predictor = MakePredictor(Plan("softmax_regression", {2}, 3, data->description().normalisation));
  const DrawStack draws = TwoDraws();
  const auto sums = PredictRows(predictor, draws, *data, 4, 5, true, false);
  ASSERT_TRUE(sums.ok()) << sums.status();
  ASSERT_EQ(sums->draw_log_likelihood.size(), 2u);
  EXPECT_EQ(sums->draw_weights, draws.weights);
  for (int s = 0; s < 2; ++s) {
    double log_likelihood = 0;
    int64_t hits = 0;
    for (int64_t row = 4; row < 9; ++row) {
      float x[2];
      for (int f : {0, 1}) {
        x[f] = (static_cast<uint8_t>(data->input_bytes()[2 * row + f]) / 255.0f - 0.5f) / 0.29f;
      }
      const std::vector<double> p = SoftmaxByHand(*draws.theta[s], x);
      const int32_t label = std::get<std::vector<int32_t>>(data->targets())[row];
      log_likelihood += std::log(p[label]);
      hits += std::max_element(p.begin(), p.end()) - p.begin() == label;
    }
    EXPECT_NEAR(sums->draw_log_likelihood[s], log_likelihood, 1e-4);
    EXPECT_EQ(sums->classes().draw_hits[s], hits);
  }
}

// y = W x + b with two inputs: W, then b, then what the likelihood adds.
DrawStack NumberDraws(const std::vector<std::vector<float>>& thetas) {
  DrawStack draws{.chain = {"houses-aaaaaa", 0}, .kind = DrawKind::kTheta, .weights = {1, 2.5}, .theta = {}};
  for (const auto& theta : thetas) draws.theta.push_back(std::make_shared<const std::vector<float>>(theta));
  return draws;
}

struct NumberCase {
  ModelSpec model;
  std::vector<std::vector<float>> thetas;
  double variance[2];  // variance of the draws, at row 0 if it depends on the row
};

TEST(Predictor, SumsOfNumbersAreThoseWorkedOutByHand) {
  const BuiltinModel linear{"linear", {}};
  const NumberCase cases[] = {
      {{linear, GaussianLikelihood{.variance = 0.7}}, {{1, -2, 0.5}, {0, 3, -1}}, {0.7, 0.7}},
      {{linear, GaussianLikelihood{.variance = {}, .learned = true}},
       {{1, -2, 0.5, -1}, {0, 3, -1, 0.25}},
       {std::exp(-1.0), std::exp(0.25)}},
      {{linear, HeteroscedasticGaussianLikelihood()},
       {{1, -2, 0, 0, 0.5, -1}, {0, 3, 0, 0, -1, 0.25}},
       {std::exp(-1.0), std::exp(0.25)}},
      {{LinearRegressionPotential{.noise_variance = 0.7}}, {{1, -2, 0.5}, {0, 3, -1}}, {0.7, 0.7}}};
  const auto data = Resident(MakeTable(9, 2, false));
  for (const NumberCase& c : cases) {
    auto plan = std::make_shared<PredictPlan>();
    plan->model = c.model;
    plan->input_shape = {2};
    plan->normalisation = data->description().normalisation;
    const auto predictor = MakePredictor(plan);
    const auto sums = PredictRows(predictor, NumberDraws(c.thetas), *data, 2, 5, true, false);
    ASSERT_TRUE(sums.ok()) << sums.status();
    EXPECT_EQ(sums->targets(), Targets(Numbers()));
    ASSERT_EQ(sums->numbers().sum_wm.size(), 5u);
    ASSERT_EQ(sums->draw_log_likelihood.size(), 2u);
    double log_likelihood[2] = {};
    for (int64_t row = 0; row < 5; ++row) {
      const float* stored = reinterpret_cast<const float*>(data->input_bytes().data()) + 2 * (row + 2);
      const double y = std::get<std::vector<float>>(data->targets())[row + 2];
      double wm = 0, wm2 = 0, wv = 0, density = 0, distribution = 0;
      for (const int s : {0, 1}) {
        const std::vector<float>& theta = c.thetas[s];
        const double bias = theta.size() == 6 ? theta[4] : theta[2];
        const double mean = theta[0] * (stored[0] - 0.3) / 1.7 + theta[1] * (stored[1] - 0.3) / 1.7 + bias;
        const double w = s == 0 ? 1 : 2.5, v = c.variance[s];
        wm += w * mean;
        wm2 += w * mean * mean;
        wv += w * v;
        const double log_density = -(y - mean) * (y - mean) / (2 * v) - std::log(2 * std::acos(-1) * v) / 2;
        log_likelihood[s] += log_density;
        density += w * std::exp(log_density);
        distribution += w * (1 + std::erf((y - mean) / std::sqrt(2 * v))) / 2;
      }
      EXPECT_NEAR(sums->numbers().sum_wm[row], wm, 1e-5);
      EXPECT_NEAR(sums->numbers().sum_wm2[row], wm2, 1e-4);
      EXPECT_NEAR(sums->numbers().sum_wv[row], wv, 1e-6);
      EXPECT_NEAR(sums->numbers().log_sum_wd[row], std::log(density), 1e-4);
      EXPECT_NEAR(sums->numbers().sum_wc[row], distribution, 1e-5);
    }
    for (const int s : {0, 1}) EXPECT_NEAR(sums->draw_log_likelihood[s], log_likelihood[s], 1e-3);
    EXPECT_FALSE(
        PredictRows(predictor, NumberDraws(c.thetas), *Resident(MakeTable(9, 2, true)), 0, 9, true, false).ok());
  }
}

// The logistic regression and a network of one logit see classes as a softmax of (0, logit) does.
TEST(Predictor, ALogitIsAClassifierOfTwo) {
  const auto data = Resident(MakeTable(9, 2, true));
  const DrawStack draws = NumberDraws({{1, -2, 0.5}, {0, 3, -1}});
  for (const ModelSpec& model :
       {ModelSpec{LogisticRegressionPotential()}, ModelSpec{BuiltinModel{"linear", {}}, BernoulliLikelihood()}}) {
    auto plan = std::make_shared<PredictPlan>();
    plan->model = model;
    plan->input_shape = {2};
    plan->targets = Classes{2};
    plan->normalisation = data->description().normalisation;
    const auto softmax = Plan("softmax_regression", {2}, 2, data->description().normalisation);
    const auto sums = PredictRows(MakePredictor(plan), draws, *data, 0, 9, true, false);
    const auto expected = PredictRows(MakePredictor(softmax), NumberDraws({{0, 0, 1, -2, 0, 0.5}, {0, 0, 0, 3, 0, -1}}),
                                      *data, 0, 9, true, false);
    ASSERT_TRUE(sums.ok() && expected.ok()) << sums.status();
    for (int64_t i = 0; i < 18; ++i) EXPECT_NEAR(sums->classes().sum_wp[i], expected->classes().sum_wp[i], 1e-6);
    for (int64_t row = 0; row < 9; ++row)
      EXPECT_NEAR(sums->classes().sum_wh[row], expected->classes().sum_wh[row], 1e-6);
    EXPECT_EQ(sums->classes().votes, expected->classes().votes);
    EXPECT_EQ(sums->classes().draw_hits, expected->classes().draw_hits);
    for (const int s : {0, 1}) EXPECT_NEAR(sums->draw_log_likelihood[s], expected->draw_log_likelihood[s], 1e-5);
  }
}

TEST(Predictor, ASmallProbabilityOfEitherLabelIsNotLost) {
  const auto data = Resident(MakeTable(9, 2, true));
  auto plan = std::make_shared<PredictPlan>();
  plan->model = ModelSpec{LogisticRegressionPotential()};
  plan->input_shape = {2};
  plan->targets = Classes{2};
  plan->normalisation = data->description().normalisation;
  for (const float logit : {-40.0f, 40.0f}) {
    const DrawStack draws = NumberDraws({{0, 0, logit}, {0, 0, logit}});
    const auto sums = PredictRows(MakePredictor(plan), draws, *data, 0, 1, true, false);
    ASSERT_TRUE(sums.ok()) << sums.status();
    EXPECT_NEAR(sums->classes().sum_wp[logit > 0 ? 0 : 1] / (3.5 * std::exp(-40.0)), 1, 1e-5);
  }
}

TEST(Predictor, GivesTheSameBitsHoweverRowsAreCutAndThreadsAreSet) {
  const auto data = SyntheticImages(150);
  for (const std::string model : {"mlp", "lenet5"}) {
    SCOPED_TRACE(model);
    const auto potential = MakeNetwork(model, data);
    const ThetaArena theta = RandomTheta(potential->layout(), 3);
    DrawStack draws;
    draws.weights = {1, 1, 1};
    for (int r = 0; r < 3; ++r) draws.theta.push_back(std::make_shared<const std::vector<float>>(theta.ReadRow(r)));
    const auto predictor = MakePredictor(Plan(model, {1, 28, 28}, 10, data->description().normalisation));
    at::set_num_threads(1);
    const auto whole = PredictRows(predictor, draws, *data, 0, 150, false, false);
    ASSERT_TRUE(whole.ok()) << whole.status();
    at::set_num_threads(2);
    for (const auto& [first, rows] : {std::pair(0, 1), std::pair(1, 77), std::pair(78, 72), std::pair(0, 150)}) {
      const auto part = PredictRows(predictor, draws, *data, first, rows, false, false);
      ASSERT_TRUE(part.ok()) << part.status();
      const InputTensor inputs{
          InputType::kUint8, {rows, 1, 28, 28}, data->input_bytes().substr(first * 784, rows * 784)};
      const auto given = Predict(predictor, draws, inputs, false);
      ASSERT_TRUE(given.ok()) << given.status();
      const auto begin = whole->classes().sum_wp.begin() + first * 10;
      EXPECT_EQ(part->classes().sum_wp, std::vector<double>(begin, begin + rows * 10));
      EXPECT_EQ(given->classes().sum_wp, part->classes().sum_wp);
      EXPECT_EQ(part->classes().sum_wh, std::vector<double>(whole->classes().sum_wh.begin() + first,
                                                            whole->classes().sum_wh.begin() + first + rows));
    }
    at::set_num_threads(1);
  }
}

TEST(Predictor, StacksTogetherGiveTheBitsOfEachAlone) {
  const auto data = SyntheticImages(600);
  const auto potential = MakeNetwork("mlp", data);
  const ThetaArena theta = RandomTheta(potential->layout(), 6);
  std::vector<DrawStack> stacks(3);
  for (int r = 0; r < 6; ++r) {
    stacks[r / 2].chain = {"fashion-aaaaaa", r / 2};
    stacks[r / 2].weights.push_back(1 + r);
    stacks[r / 2].theta.push_back(std::make_shared<const std::vector<float>>(theta.ReadRow(r)));
  }
  const auto predictor = MakePredictor(Plan("mlp", {1, 28, 28}, 10, data->description().normalisation));
  for (const int64_t rows : {1, 150, 600}) {
    at::set_num_threads(2);
    const auto together = predictor->PredictRows(stacks, *data, 0, rows, true);
    at::set_num_threads(1);
    ASSERT_TRUE(together.ok()) << together.status();
    ASSERT_EQ(together->size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      const auto alone = PredictRows(predictor, stacks[i], *data, 0, rows, true);
      ASSERT_TRUE(alone.ok()) << alone.status();
      EXPECT_EQ((*together)[i].chain, stacks[i].chain);
      EXPECT_EQ((*together)[i].sum_w, alone->sum_w);
      EXPECT_EQ((*together)[i].classes().sum_wp, alone->classes().sum_wp) << rows << " rows, stack " << i;
      EXPECT_EQ((*together)[i].classes().sum_wh, alone->classes().sum_wh);
      EXPECT_EQ((*together)[i].draw_log_likelihood, alone->draw_log_likelihood);
    }
  }
}

DrawStack Some(const DrawStack& draws, size_t first, size_t count) {
  DrawStack some = draws;
  some.weights.assign(draws.weights.begin() + first, draws.weights.begin() + first + count);
  some.theta.assign(draws.theta.begin() + first, draws.theta.begin() + first + count);
  return some;
}

// Sums of the newest 1, the next 2, 4, ... draws, added up.
PartialPrediction SumOfRuns(Predictor* predictor, const DrawStack& draws, const InputTensor& inputs) {
  PartialPrediction sum;
  ClassSums& classes = sum.sums.emplace<ClassSums>();
  for (size_t done = 0, count = 1; done < draws.theta.size(); done += count, count *= 2) {
    count = std::min(count, draws.theta.size() - done);
    const auto run = Predict(predictor, Some(draws, draws.theta.size() - done - count, count), inputs);
    CHAINFLEET_CHECK(run.ok()) << run.status().ToString();
    sum.sum_w += run->sum_w;
    sum.sum_w2 += run->sum_w2;
    for (const auto& [name, values, per_class] : ClassSums::kArrays) {
      std::vector<double>& to = classes.*values;
      to.resize((run->classes().*values).size());
      for (size_t i = 0; i < to.size(); ++i) to[i] += (run->classes().*values)[i];
    }
  }
  return sum;
}

TEST(Predictor, RunsOfDrawsAddUpToTheSameBits) {
  const auto data = SyntheticImages(40);
  const auto potential = MakeNetwork("mlp", data);
  const ThetaArena theta = RandomTheta(potential->layout(), 11);
  DrawStack all;
  for (int r = 0; r < 11; ++r) {
    all.weights.push_back(1 + 0.1 * r);
    all.theta.push_back(std::make_shared<const std::vector<float>>(theta.ReadRow(r)));
  }
  const auto predictor = MakePredictor(Plan("mlp", {1, 28, 28}, 10, data->description().normalisation));
  const InputTensor inputs{InputType::kUint8, {40, 1, 28, 28}, data->input_bytes().substr(0, 40 * 784)};
  for (const size_t count : {1, 2, 3, 6, 7, 11}) {
    const DrawStack draws = Some(all, 11 - count, count);
    const auto whole = Predict(predictor, draws, inputs);
    ASSERT_TRUE(whole.ok()) << whole.status();
    const PartialPrediction runs = SumOfRuns(predictor.get(), draws, inputs);
    EXPECT_EQ(whole->sum_w, runs.sum_w) << count;
    EXPECT_EQ(whole->sum_w2, runs.sum_w2) << count;
    EXPECT_EQ(whole->classes().sum_wp, runs.classes().sum_wp) << count;
    EXPECT_EQ(whole->classes().sum_wp2, runs.classes().sum_wp2) << count;
    EXPECT_EQ(whole->classes().sum_wh, runs.classes().sum_wh) << count;
    EXPECT_EQ(whole->classes().votes, runs.classes().votes) << count;
  }
}

TEST(Predictor, MembersAreWhatEachDrawSaysAlone) {
  const auto predictor = MakePredictor(Plan("softmax_regression", {2}, 3, {}));
  const DrawStack draws = TwoDraws();
  const std::vector<float> x = {1, 2, -1, 0.5, 0, 0};
  const auto sums = Predict(predictor, draws, Floats(x, {3, 2}), /*members=*/true);
  ASSERT_TRUE(sums.ok()) << sums.status();
  ASSERT_TRUE(sums->members);
  EXPECT_EQ(sums->members->chain, draws.chain);
  EXPECT_EQ(sums->members->kind, DrawKind::kThetaA);
  EXPECT_EQ(sums->members->weights, draws.weights);
  ASSERT_EQ(sums->members->classes().probabilities.size(), 18u);
  for (int s = 0; s < 2; ++s) {
    for (int row = 0; row < 3; ++row) {
      const std::vector<double> p = SoftmaxByHand(*draws.theta[s], x.data() + 2 * row);
      for (int k = 0; k < 3; ++k)
        EXPECT_NEAR(sums->members->classes().probabilities[(s * 3 + row) * 3 + k], p[k], 1e-6);
    }
  }
  EXPECT_FALSE(Predict(predictor, draws, Floats(x, {3, 2}))->members) << "not asked for";
}

TEST(Predictor, MembersOfNumbersAreMeansAndVariances) {
  const auto data = Resident(MakeTable(9, 2, false));
  auto plan = std::make_shared<PredictPlan>();
  plan->model = {BuiltinModel{"linear", {}}, GaussianLikelihood{.variance = {}, .learned = true}};
  plan->input_shape = {2};
  plan->normalisation = data->description().normalisation;
  const DrawStack draws = NumberDraws({{1, -2, 0.5, -1}, {0, 3, -1, 0.25}});
  const auto predictor = MakePredictor(plan);
  const auto sums = PredictRows(predictor, draws, *data, 2, 5, false, /*members=*/true);
  ASSERT_TRUE(sums.ok() && sums->members) << sums.status();
  ASSERT_EQ(sums->members->numbers().mean.size(), 10u);
  for (size_t s = 0; s < 2; ++s) {
    const auto alone = PredictRows(predictor, Some(draws, s, 1), *data, 2, 5, false);
    ASSERT_TRUE(alone.ok());
    for (size_t row = 0; row < 5; ++row) {
      EXPECT_FLOAT_EQ(sums->members->numbers().mean[s * 5 + row],
                      static_cast<float>(alone->numbers().sum_wm[row] / alone->sum_w));
      EXPECT_FLOAT_EQ(sums->members->numbers().variance[s * 5 + row],
                      static_cast<float>(std::exp(s == 0 ? -1.0 : 0.25)));
    }
  }
}

TEST(Predictor, NamesBothShapesWhenInputsDoNotFit) {
  const auto predictor = MakePredictor(Plan("mlp", {1, 28, 28}, 10, {}));
  const auto wrong = Predict(predictor, DrawStack(), Floats(std::vector<float>(784), {28, 28}), false);
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("[n, 1, 28, 28]"));
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("[28, 28]"));
  const auto short_bytes =
      Predict(predictor, DrawStack(), InputTensor{InputType::kFloat32, {1, 1, 28, 28}, std::string(784, 0)}, false);
  EXPECT_EQ(short_bytes.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(short_bytes.status().message()), HasSubstr("3136 bytes, got 784"));
}

TEST(Predictor, RefusesDrawsAndRowsThatDoNotFit) {
  const auto data = SyntheticImages(10, {2}, 3);
  const auto predictor = MakePredictor(Plan("softmax_regression", {2}, 3, data->description().normalisation));
  EXPECT_EQ(PredictRows(predictor, TwoDraws(), *data, 8, 3, false, false).status().code(),
            absl::StatusCode::kInvalidArgument);
  DrawStack draws = TwoDraws();
  draws.theta[1] = std::make_shared<const std::vector<float>>(8);
  const auto status = PredictRows(predictor, draws, *data, 0, 3, false, false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("8 parameters, the model of job fashion-aaaaaa has 9"));
  EXPECT_EQ(Predictor::Create(Plan("resnet", {2}, 3, {}), "cpu").status().code(), absl::StatusCode::kInvalidArgument);
}

// Blocks of 64 rows, stretches that begin anywhere: a row is changed by its place in the data set alone.
TEST(Predictor, CorruptedRowsAreThoseOfTheirPlaceInTheDataset) {
  const auto data = SyntheticImages(150);
  const auto predictor = MakePredictor(Plan("lenet5", {1, 28, 28}, 10, data->description().normalisation));
  DrawStack draws;
  draws.weights = {1};
  draws.theta = {
      std::make_shared<const std::vector<float>>(RandomTheta(MakeNetwork("lenet5", data)->layout(), 1).ReadRow(0))};
  const Corruption corruption = {"gaussian_noise", 3, 7};
  const auto corrupter = Corrupter::Create(corruption, {1, 28, 28});
  ASSERT_TRUE(corrupter.ok());
  std::vector<float> images;
  for (int64_t row = 0; row < 150; ++row) {
    std::vector<float> image;
    for (int64_t i = 0; i < 784; ++i)
      image.push_back(static_cast<uint8_t>(data->input_bytes()[row * 784 + i]) / 255.0f);
    corrupter->Change(row, image.data());
    images.insert(images.end(), image.begin(), image.end());
  }
  const auto wanted = Predict(predictor, draws, Floats(images, {150, 1, 28, 28}), false);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  const auto whole = PredictRows(predictor, draws, *data, 0, 150, true, false, &corruption);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->draw_log_likelihood.size(), 1u);
  for (size_t i = 0; i < wanted->classes().sum_wp.size(); ++i)
    EXPECT_NEAR(whole->classes().sum_wp[i], wanted->classes().sum_wp[i], 1e-6);
  std::vector<double> in_parts;
  for (const auto& [first, rows] : {std::pair{0, 1}, {1, 70}, {71, 79}}) {
    const auto part = PredictRows(predictor, draws, *data, first, rows, false, false, &corruption);
    ASSERT_TRUE(part.ok()) << part.status();
    in_parts.insert(in_parts.end(), part->classes().sum_wp.begin(), part->classes().sum_wp.end());
  }
  EXPECT_EQ(in_parts, whole->classes().sum_wp);
  EXPECT_NE(PredictRows(predictor, draws, *data, 0, 150, false, false)->classes().sum_wp, whole->classes().sum_wp);
}

TEST(Predictor, RefusesACorruptionThatIsNoneOrNotOfSuchInputs) {
  const auto data = SyntheticImages(10, {2}, 3);
  const auto predictor = MakePredictor(Plan("softmax_regression", {2}, 3, {}));
  const auto refusal = [&](const Corruption& corruption) {
    const auto status = PredictRows(predictor, TwoDraws(), *data, 0, 3, false, false, &corruption).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return status.ToString();
  };
  EXPECT_THAT(refusal({"snow", 1, 0}), HasSubstr("must be one of gaussian_noise"));
  EXPECT_THAT(refusal({"fog", 6, 0}), HasSubstr("corruption.severity"));
  EXPECT_THAT(refusal({"fog", 1, 0}), HasSubstr("inputs [2]"));
}

}  // namespace
}  // namespace chainfleet
