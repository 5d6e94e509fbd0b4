#include "server/predict/evaluation/non_finite_rows.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/predict/evaluation/score_curve.h"
#include "server/predict/evaluation/scored_rows.h"
#include "tests/server/predict/fake_serving.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr DrawKind kTheta = DrawKind::kTheta, kThetaA = DrawKind::kThetaA;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Theta of chain 1 says NaN of rows 3 and up.
std::vector<double> Diverged(const ChainId& chain, DrawKind kind, int64_t, int64_t row) {
  if (chain.index == 1 && kind == kTheta && row >= 3) return {kNaN, kNaN};
  return {0.75, 0.25};
}

std::vector<PartialPrediction> Sums(const std::vector<int64_t>& rows, const std::vector<int32_t>& labels,
                                    int32_t num_chains = 2) {
  std::vector<PartialPrediction> sums;
  for (int32_t c = 0; c < num_chains; ++c) {
    for (const DrawKind kind : {kTheta, kThetaA}) {
      sums.push_back(testing::SumDraws({"job-aaaaaa", c}, kind, {{0, 1}}, rows, 2, Diverged, &labels));
    }
  }
  return sums;
}

TEST(NonFiniteRows, CountsThemAndNamesTheFirstAndItsDrawsWhateverBlockCameFirst) {
  const std::vector<int32_t> labels(6);
  std::vector<std::string> messages;
  for (const bool forwards : {true, false}) {
    NonFiniteRows found;
    if (forwards) found.Add({0, 4}, Sums({0, 1, 2, 3}, labels));
    found.Add({4, 2}, Sums({4, 5}, labels));
    if (!forwards) found.Add({0, 4}, Sums({0, 1, 2, 3}, labels));
    const absl::Status status = found.Check("data set data", 6);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ReasonOf(status), "NOT_FINITE");
    messages.push_back(std::string(status.message()));
  }
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_THAT(messages[0], HasSubstr("3 of 6 rows of data set data, the first is row 3: theta of chain 1."));
}

TEST(NonFiniteRows, FiniteOnesAreNoError) {
  const std::vector<int32_t> labels(3);
  NonFiniteRows found;
  found.Add({0, 3}, Sums({0, 1, 2}, labels));
  EXPECT_TRUE(found.Check("data set data", 3).ok());
}

TEST(NonFiniteRows, NamesFewOfManyChains) {
  NonFiniteRows found;
  for (int32_t c = 0; c < 100; ++c) {
    PartialPrediction partial = testing::SumDraws({"job-aaaaaa", 1}, kTheta, {{0, 1}}, {3}, 2, Diverged);
    partial.chain.index = c;
    found.Add({c, 1}, {partial});
  }
  const std::string message(found.Check("data set data", 100).message());
  EXPECT_THAT(message, HasSubstr("theta of chain 7, 92 more"));
  EXPECT_THAT(message, Not(HasSubstr("chain 8")));
}

TEST(NonFiniteRows, ADensityOfZeroIsFiniteForNumbers) {
  const std::vector<float> targets = {1};
  const auto says = [](const ChainId&, DrawKind, int64_t, int64_t) { return std::vector<double>{1, 4}; };
  PartialPrediction partial = testing::SumNumberDraws({"job-aaaaaa", 0}, kTheta, {{0, 1}}, {0}, says, &targets);
  EXPECT_TRUE(IsFinite(partial, 0));
  partial.numbers().log_sum_wd = {-kInfinity};
  EXPECT_TRUE(IsFinite(partial, 0));
  for (auto values :
       {&NumberSums::sum_wm, &NumberSums::sum_wm2, &NumberSums::sum_wv, &NumberSums::log_sum_wd, &NumberSums::sum_wc}) {
    for (const double wrong : {kNaN, kInfinity}) {
      PartialPrediction broken = partial;
      (broken.numbers().*values)[0] = wrong;
      EXPECT_FALSE(IsFinite(broken, 0));
    }
  }
}

// The functions below it answer as well, for whoever asks them first.
TEST(NonFiniteRows, EveryScoreOfSuchRowsComesToAnEnd) {
  const std::vector<int32_t> labels = {0, 1, 0, 1};
  ScoredRows rows({kTheta, kThetaA}, 4, Classes{2}, labels), ood({kTheta, kThetaA}, 4, Classes{2}, {});
  rows.Add({0, 4}, Sums({0, 1, 2, 3}, labels));
  ood.Add({0, 4}, Sums({0, 1, 2, 3}, labels));
  const std::vector<Scores> table = ScoreTable(rows, &ood, 15);
  EXPECT_TRUE(std::isnan(table[0].nll)) << "of single draws of theta";
  EXPECT_EQ(table[1].accuracy, 0.5) << "of those of theta_a";
  const Scores& all = table.back();
  EXPECT_TRUE(std::isnan(all.accuracy) && std::isnan(all.nll) && std::isnan(all.brier) && std::isnan(*all.ood_auroc));
  EXPECT_FALSE(all.misclassification_auroc.has_value());
  EXPECT_NEAR(all.ece, std::abs(0.75 - 2.0 / 3), 1e-15) << "of the three rows that have a confidence";
  EXPECT_TRUE(std::isnan(*CalibratedScores(rows, rows, 15).back().temperature));
  std::vector<int64_t> named;
  for (const ExampleRow& example : ExampleRows(rows, 12)) named.push_back(example.row);
  EXPECT_THAT(named, ElementsAre(0, 1, 2));
}

TEST(NonFiniteRows, TheCurveOfSuchRowsComesToAnEnd) {
  const std::vector<int32_t> labels = {0, 1, 0, 1};
  std::vector<PartialPrediction> sums = Sums({0, 1, 2, 3}, labels);
  for (PartialPrediction& sum : sums) {
    sum.members = testing::MembersOf(sum.chain, sum.kind, {{0, 1}}, {0, 1, 2, 3}, 2, Diverged);
  }
  ScoreCurve curve({1, 1}, 2, 2, labels, 15);
  curve.Add({0, 4}, sums);
  ASSERT_THAT(curve.Points(), SizeIs(1));
  EXPECT_TRUE(std::isnan(curve.Points()[0].nll));
  EXPECT_NEAR(curve.Points()[0].ece, std::abs(0.75 - 2.0 / 3), 1e-15);
}

TEST(NonFiniteRows, ScoresOfSuchNumbersComeToAnEnd) {
  const std::vector<float> targets = {1, 2};
  const auto says = [](const ChainId&, DrawKind, int64_t, int64_t row) {
    return row == 0 ? std::vector<double>{1, 4} : std::vector<double>{kNaN, kNaN};
  };
  ScoredRows numbers({kTheta}, 2, Numbers(), targets);
  numbers.Add({0, 2}, {testing::SumNumberDraws({"job-aaaaaa", 0}, kTheta, {{0, 1}}, {0, 1}, says, &targets)});
  for (const Scores& scores : ScoreTable(numbers, nullptr, 15)) {
    EXPECT_TRUE(std::isnan(scores.nll) && std::isnan(*scores.rmse)) << scores.what;
    EXPECT_TRUE(std::isnan(scores.coverage_90.value_or(kNaN)));
  }
}

}  // namespace
}  // namespace chainfleet
