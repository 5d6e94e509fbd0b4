#include "server/predict/evaluation/evaluation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "core/base/limits.h"
#include "core/domain/corruption.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/predict/evaluation/evaluation_world.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Names;
using ::testing::SizeIs;
using Mood = testing::FakeShardPort::Mood;
using World = testing::EvaluationWorld;

// Two chains (2 and 1 draws), P(class 0) of theta is .9, .5, .7 on row 0 and .2, .4, .6 on row 1; theta_a always .5.
std::vector<double> ByHand(const ChainId& chain, DrawKind kind, int64_t draw, int64_t row) {
  if (kind == DrawKind::kThetaA) return {0.5, 0.5};
  const double p[2][3] = {{0.9, 0.5, 0.7}, {0.2, 0.4, 0.6}};
  const double value = p[row][chain.index == 0 ? draw : 2];
  return {value, 1 - value};
}

TEST(Evaluation, ScoresSingleDrawsAndAveragesAsByHand) {
  World world(ByHand);
  world.AddDataset("data", {{0}, {1}});  // row 0 is class 0, row 1 is class 1
  const absl::StatusOr<Evaluation> result = world.Evaluate("data");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Names(*result), ElementsAre("single theta", "single theta_a", "theta", "theta_a", "all"));
  EXPECT_EQ(result->num_rows, 2);
  EXPECT_EQ(result->draws_used, 3);
  EXPECT_EQ(result->draws_in_version, 3);

  const Scores& single = result->scores[0];
  EXPECT_EQ(single.num_draws, 3);
  EXPECT_NEAR(single.accuracy, 5.0 / 6, 1e-14);  // .5 on row 0 counts (the first of equals), .6 on row 1 does not
  EXPECT_NEAR(single.nll, -std::log(0.9 * 0.5 * 0.7 * 0.8 * 0.6 * 0.4) / 6, 1e-14);
  EXPECT_NEAR(single.brier, 2 * (0.01 + 0.25 + 0.09 + 0.04 + 0.16 + 0.36) / 6, 1e-14);
  EXPECT_TRUE(std::isnan(single.ece));

  const Scores& theta = result->scores[2];  // means .7 and .4
  EXPECT_EQ(theta.num_draws, 3);
  EXPECT_EQ(theta.accuracy, 1);
  EXPECT_NEAR(theta.nll, -std::log(0.7 * 0.6) / 2, 1e-14);
  EXPECT_NEAR(theta.brier, 0.09 + 0.16, 1e-14);
  EXPECT_NEAR(theta.ece, (0.3 + 0.4) / 2, 1e-14);

  const Scores& all = result->scores[4];  // with theta_a: .6 and .45
  EXPECT_EQ(all.num_draws, 6);
  EXPECT_NEAR(all.nll, -std::log(0.6 * 0.55) / 2, 1e-14);
  EXPECT_GT(all.mean_mutual_information, 0);
  EXPECT_NEAR(result->scores[3].mean_mutual_information, 0, 1e-14);
  EXPECT_FALSE(all.ood_auroc.has_value());
}

// Two chains (2 and 1 draws); theta's means 1, 3, 5 on row 0 and 0, 0, 3 on row 1, variance 4; theta_a's 2, variance 1.
std::vector<double> NumbersByHand(const ChainId& chain, DrawKind kind, int64_t draw, int64_t row) {
  if (kind == DrawKind::kThetaA) return {2, 1};
  const double mean[2][3] = {{1, 3, 5}, {0, 0, 3}};
  return {mean[row][chain.index == 0 ? draw : 2], 4};
}

double Density(double gap, double variance) {
  return std::exp(-gap * gap / (2 * variance)) / std::sqrt(2 * std::acos(-1) * variance);
}

TEST(Evaluation, ScoresNumbersAsByHand) {
  World world(NumbersByHand, std::nullopt, {2, 1}, Numbers());
  world.AddNumbers("data", {3, 9});
  const absl::StatusOr<Evaluation> result = world.Evaluate("data");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Names(*result), ElementsAre("single theta", "single theta_a", "theta", "theta_a", "all"));
  EXPECT_EQ(result->draws_used, 3);

  const Scores& single = result->scores[0];  // errors 2, 0, 2 and 9, 9, 6
  EXPECT_EQ(single.num_draws, 3);
  EXPECT_NEAR(*single.rmse, std::sqrt((4 + 0 + 4 + 81 + 81 + 36) / 6.0), 1e-12);
  double log_likelihood = 0;
  for (const double gap : {2, 0, 2, 9, 9, 6}) log_likelihood += std::log(Density(gap, 4));
  EXPECT_NEAR(single.nll, -log_likelihood / 6, 1e-12);
  EXPECT_FALSE(single.coverage_90.has_value());
  EXPECT_TRUE(std::isnan(single.accuracy));

  const Scores& theta = result->scores[2];  // means 3 and 1
  EXPECT_NEAR(*theta.rmse, std::sqrt((0 + 64) / 2.0), 1e-12);
  const double first = (2 * Density(2, 4) + Density(0, 4)) / 3, second = (2 * Density(9, 4) + Density(6, 4)) / 3;
  EXPECT_NEAR(theta.nll, -(std::log(first) + std::log(second)) / 2, 1e-12);
  EXPECT_EQ(*theta.coverage_90, 0.5);  // 9 is 3 deviations off at the nearest draw

  const Scores& all = result->scores[4];  // with theta_a: means 2.5 and 1.5
  EXPECT_EQ(all.num_draws, 6);
  EXPECT_NEAR(*all.rmse, std::sqrt((0.25 + 56.25) / 2), 1e-12);
  const double all_first = (3 * first + 3 * Density(1, 1)) / 6, all_second = (3 * second + 3 * Density(7, 1)) / 6;
  EXPECT_NEAR(all.nll, -(std::log(all_first) + std::log(all_second)) / 2, 1e-12);
}

TEST(Evaluation, RefusesWhatOnlyClassesHaveForAJobThatLearnsNumbers) {
  World world(NumbersByHand, std::nullopt, {2, 1}, Numbers());
  world.AddNumbers("data", {3, 9});
  world.AddDataset("labels", {{0, 1}});
  const absl::Status labels = world.Evaluate("labels").status();
  EXPECT_EQ(labels.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(labels.message()), HasSubstr("learns float32 targets"));
  EXPECT_THAT(std::string(world.Evaluate("data", "data").status().message()), HasSubstr("ood_dataset"));
  World classes(ByHand);
  classes.AddNumbers("data", {3, 9});
  EXPECT_THAT(std::string(classes.Evaluate("data").status().message()), HasSubstr("need labels"));
}

TEST(Evaluation, SeparatesTheShiftedSetByBothEntropies) {
  // Rows of "data" are sure; of the shifted set rows 2 and 3 the draws disagree, so both scores are higher there.
  const auto probabilities = [](const ChainId& chain, DrawKind, int64_t, int64_t row) {
    if (row < 2) return std::vector<double>{0.99, 0.01};
    return chain.index == 0 ? std::vector<double>{0.9, 0.1} : std::vector<double>{0.1, 0.9};
  };
  World world(probabilities);
  world.AddDataset("data", {{0, 0}});
  world.AddDataset("shifted", {{0, 0, 1, 1}});
  const absl::StatusOr<Evaluation> result = world.Evaluate("data", "shifted", {DrawKind::kTheta});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Names(*result), ElementsAre("single theta", "theta", "all"));
  EXPECT_EQ(result->num_ood_rows, 4);
  const Scores& theta = result->scores[1];
  EXPECT_NEAR(*theta.ood_auroc, 0.75, 1e-14);  // rows 0 and 1 of the shifted set tie
  EXPECT_NEAR(*theta.ood_auroc_mutual_information, 0.75, 1e-14);
  EXPECT_FALSE(result->scores[0].ood_auroc.has_value());
  EXPECT_EQ(world.progress.back().rows_done, 6);
  EXPECT_EQ(world.progress.back().rows_total, 6);
}

TEST(Evaluation, CalibratesTheAveragesByTheHeldOutSet) {
  // Sure at .9, right on two of three held-out rows: the temperature makes it 2/3, log 9 / T = log 2.
  World world([](const ChainId&, DrawKind, int64_t, int64_t) { return std::vector<double>{0.9, 0.1}; });
  world.AddDataset("data", {{0, 1}});
  world.AddDataset("held-out", {{0, 1, 0}});
  world.AddDataset("shifted", {{0}});
  const auto result = world.Evaluate("data", "shifted", {DrawKind::kTheta}, "held-out");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Names(*result), ElementsAre("single theta", "theta", "all", "calibrated theta", "calibrated all"));
  EXPECT_EQ(result->calibration_dataset, "held-out");
  EXPECT_EQ(result->num_calibration_rows, 3);
  const Scores& calibrated = result->scores[3];
  EXPECT_NEAR(*calibrated.temperature, std::log(9) / std::log(2), 1e-6);
  EXPECT_NEAR(calibrated.nll, -std::log(2.0 / 3 * 1 / 3) / 2, 1e-6);
  EXPECT_NEAR(calibrated.ece, 2.0 / 3 - 0.5, 1e-6);
  EXPECT_NEAR(calibrated.mean_predictive_entropy, std::log(3) - 2 * std::log(2) / 3, 1e-6);
  EXPECT_EQ(calibrated.accuracy, result->scores[1].accuracy);
  EXPECT_FALSE(calibrated.ood_auroc.has_value());
  EXPECT_FALSE(result->scores[1].temperature.has_value());
  EXPECT_EQ(world.progress.back().rows_done, 6);
  EXPECT_EQ(world.progress.back().rows_total, 6);
  EXPECT_EQ(world.Evaluate("data", "", {}, "none").status().code(), absl::StatusCode::kNotFound);
}

EvaluateQuery Asking(const std::string& dataset) { return {.draws = {.job = "job"}, .kinds = {}, .dataset = dataset}; }

TEST(Evaluation, TheCurveGrowsFromTheFirstStepsToTheWholeAverage) {
  World world(ByHand);
  world.AddDataset("data", {{0, 1}});
  EvaluateQuery query = Asking("data");
  query.kinds = {DrawKind::kTheta};
  query.curve_points = 2;
  const absl::StatusOr<Evaluation> result = world.Evaluate(query);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_THAT(result->curve, SizeIs(2));
  const CurvePoint& first = result->curve[0];  // one draw of each chain: .9 and .7, .2 and .6
  EXPECT_EQ(first.num_draws, 2);
  EXPECT_EQ(first.accuracy, 1);
  EXPECT_NEAR(first.nll, -std::log(0.8 * 0.6) / 2, 1e-7);  // single draws travel as float32
  EXPECT_NEAR(first.ece, (0.2 + 0.4) / 2, 1e-7);
  const CurvePoint& last = result->curve[1];
  const Scores& all = result->scores.back();
  EXPECT_EQ(last.num_draws, 3);
  EXPECT_EQ(last.accuracy, all.accuracy);
  EXPECT_NEAR(last.nll, all.nll, 1e-15);
  EXPECT_NEAR(last.ece, all.ece, 1e-15);
  EXPECT_TRUE(world.Evaluate("data")->curve.empty());
}

TEST(Evaluation, SingleDrawsOfABlockStayBelowTheirBytes) {
  World world(testing::ArbitraryProbabilities(2), std::nullopt, {300, 300});
  world.AddDataset("data", {std::vector<int32_t>(200, 0)});
  world.catalog.pinned.chains[0].num_draws = 100000;  // the fake worker finds 300 of them
  EvaluateQuery query = Asking("data");
  query.curve_points = 64;
  (void)world.Evaluate(query);
  const int64_t most = limits::kMaxMemberBytes / limits::kRunningEvaluations / 2;
  const int64_t rows = world.port.sent.at(0).request.rows->num_rows;
  EXPECT_LE(rows * 100300 * 2 * 2 * 4, most);
  EXPECT_GT((rows + 1) * 100300 * 2 * 2 * 4, most);
  world.catalog.pinned.chains[0].num_draws = 100'000'000;
  EXPECT_THAT(std::string(world.Evaluate(query).status().message()), HasSubstr("choose fewer draws"));
}

TEST(Evaluation, CutsRowsAlikeForEveryNumberOfWorkers) {
  std::vector<int64_t> rows;
  for (const int num_workers : {1, 2, 9}) {
    World world(testing::ArbitraryProbabilities(2), std::nullopt, {3, 3});
    world.AddDataset("data", {std::vector<int32_t>(2000, 0)});
    world.port.workers.clear();
    for (int w = 0; w < num_workers; ++w) world.port.workers["w" + std::to_string(w)] = Mood::kAnswers;
    for (ChainDraws& chain : world.catalog.pinned.chains) chain.num_draws = 100;  // the fake worker finds 3 of them
    (void)world.Evaluate("data");
    rows.push_back(world.port.sent.at(0).request.rows->num_rows);
  }
  EXPECT_THAT(rows,
              ElementsAre(163, 163, 163));  // 2^15 passes of 100 draws and 2 kinds: sums over blocks keep their bits
}

TEST(Evaluation, ScoresChangedRowsAtEachSeverity) {
  // Rows changed at severity s are as rows 1000 s and up: there the confidence in class 0 is .9 - .1 s.
  World world([](const ChainId&, DrawKind, int64_t, int64_t row) {
    const double p = 0.9 - 0.1 * static_cast<double>(row / 1000);
    return std::vector<double>{p, 1 - p};
  });
  world.AddImages("data", {0, 0, 1});
  EvaluateQuery query = Asking("data");
  query.corruptions = {"fog", "contrast", "fog"};
  const absl::StatusOr<Evaluation> result = world.Evaluate(query);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_THAT(result->corrupted, SizeIs(10));
  EXPECT_EQ(result->corrupted[0].corruption, "contrast") << "in the order of their list, each once";
  EXPECT_EQ(result->corrupted[9].corruption, "fog");
  for (int s = 1; s <= 5; ++s) {
    const CorruptedScores& changed = result->corrupted[static_cast<size_t>(4 + s)];
    EXPECT_EQ(changed.severity, s);
    EXPECT_EQ(changed.scores.what, "all");
    const double p = 0.9 - 0.1 * s;
    EXPECT_NEAR(changed.scores.nll, -(2 * std::log(p) + std::log(1 - p)) / 3, 1e-12);
  }
  EXPECT_EQ(world.progress.back().rows_total, 3 * 11);
  EXPECT_EQ(world.progress.back().rows_done, 3 * 11);
  query.corruptions = {"all"};
  EXPECT_THAT(world.Evaluate(query)->corrupted, SizeIs(5 * CorruptionNames().size()));
}

TEST(Evaluation, AsksForTheFlatnessOfEachChainsNewestDraw) {
  World world(ByHand, std::nullopt, {2, 1, 5});
  world.AddDataset("data", {std::vector<int32_t>(2, 0)});
  EvaluateQuery query = Asking("data");
  query.flatness = true;
  world.port.workers = {{"a", Mood::kAnswers}, {"b", Mood::kAnswers}};
  world.evaluator.Check(query, absl::Seconds(1), [](const absl::StatusOr<int64_t>& version) {
    ASSERT_TRUE(version.ok()) << version.status();
    EXPECT_EQ(*version, 3);
  });
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.port.sent, SizeIs(0)) << "a check sends nothing";
  World numbers([](const ChainId&, DrawKind, int64_t, int64_t) { return std::vector<double>{0.5, 0.5}; }, 1, {2, 1, 5});
  numbers.AddDataset("data", {std::vector<int32_t>(2, 0)});
  const absl::StatusOr<Evaluation> result = numbers.Evaluate(query);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_THAT(result->flatness, SizeIs(3));
  for (int32_t c = 0; c < 3; ++c) EXPECT_EQ(result->flatness[static_cast<size_t>(c)].chain.index, c);
  EXPECT_EQ(result->flatness[0].fisher_trace, 1);  // the index of the newest draw
  EXPECT_EQ(result->flatness[1].fisher_trace, 0);
  EXPECT_EQ(result->flatness[2].fisher_trace, 4);
}

TEST(Evaluation, RefusesOptionsOutOfTheirBoundsByName) {
  World world(ByHand);
  world.AddDataset("data", {{0, 1}});
  EvaluateQuery query = Asking("data");
  query.curve_points = limits::kMaxCurvePoints + 1;
  query.example_rows = -1;
  query.corruptions = {"fogg"};
  const absl::Status status = world.Evaluate(query).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  std::vector<std::string> paths;
  for (const FieldViolation& violation : FieldViolationsOf(status)) paths.push_back(violation.path);
  EXPECT_THAT(paths, ElementsAre("curve_points", "example_rows", "corruptions"));
  query = Asking("data");
  query.corruptions = {"fog"};
  EXPECT_THAT(std::string(world.Evaluate(query).status().message()), HasSubstr("images")) << "rows of one number";
  query = Asking("data");
  world.port.workers.clear();
  world.evaluator.Check(query, absl::Seconds(1), [](const absl::StatusOr<int64_t>& version) {
    EXPECT_EQ(ReasonOf(version.status()), "NO_SERVING_WORKER");
  });
  world.executor.RunUntilIdle();
}

TEST(Evaluation, GivesTheSameBitsForEveryPlacementAndOrder) {
  const std::vector<int32_t> labels(3000, 1);
  std::optional<Evaluation> expected;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    World world(testing::ArbitraryProbabilities(2), seed, {2, 3, 1, 2, 2});
    world.port.workers = {};
    for (uint64_t w = 0; w < seed; ++w) world.port.workers["w" + std::to_string(w)] = Mood::kAnswers;
    world.AddDataset("data", {labels});
    EvaluateQuery query = Asking("data");
    query.curve_points = 3;
    const absl::StatusOr<Evaluation> result = world.Evaluate(query);
    ASSERT_TRUE(result.ok()) << result.status();
    if (!expected) expected = *result;
    for (size_t i = 0; i < result->scores.size(); ++i) {
      EXPECT_EQ(result->scores[i].nll, expected->scores[i].nll) << "seed " << seed;
      EXPECT_EQ(result->scores[i].brier, expected->scores[i].brier);
      EXPECT_EQ(result->scores[i].mean_mutual_information, expected->scores[i].mean_mutual_information);
    }
    ASSERT_THAT(result->curve, SizeIs(3));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(result->curve[i].nll, expected->curve[i].nll);
      EXPECT_EQ(result->curve[i].ece, expected->curve[i].ece);
    }
  }
}

TEST(Evaluation, NonsenseOfOneWorkerChangesNoBitOfScoresAndFlatness) {
  std::optional<Evaluation> expected;
  for (const Mood mood : {Mood::kAnswers, Mood::kSendsNonsense}) {
    World world(testing::ArbitraryProbabilities(2), std::nullopt, {2, 1, 5});
    world.port.workers["b"] = mood;
    world.AddDataset("data", {std::vector<int32_t>(3000, 1)});
    EvaluateQuery query = Asking("data");
    query.flatness = true;
    const absl::StatusOr<Evaluation> result = world.Evaluate(query);
    ASSERT_TRUE(result.ok()) << result.status();
    if (!expected) expected = *result;
    ASSERT_EQ(result->scores.size(), expected->scores.size());
    EXPECT_EQ(result->scores.back().nll, expected->scores.back().nll);
    ASSERT_THAT(result->flatness, SizeIs(3));
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(result->flatness[c].fisher_trace, expected->flatness[c].fisher_trace);
  }
}

TEST(Evaluation, KeepsFewBlocksInFlight) {
  World world(testing::ArbitraryProbabilities(2));
  world.AddDataset("data", {std::vector<int32_t>(10000, 0)});
  ASSERT_TRUE(world.Evaluate("data").ok());
  EXPECT_THAT(world.port.sent, SizeIs(20));
  EXPECT_THAT(world.progress, SizeIs(10));
  EXPECT_LE(world.port.most_in_flight, 2);
}

TEST(Evaluation, LeavesOutCorruptDraws) {
  World world(ByHand);
  world.port.corrupt = {"0/0"};
  world.AddDataset("data", {{0, 1}});
  const absl::StatusOr<Evaluation> result = world.Evaluate("data");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->draws_used, 2);
  EXPECT_NEAR(result->scores[2].nll, -std::log(0.6 * 0.5) / 2, 1e-14);  // means of .5, .7 and of .4, .6
  EXPECT_THAT(world.catalog.corrupt, ElementsAre("0/0"));
}

TEST(Evaluation, RefusesDataSetsThatDoNotFit) {
  World world(ByHand);
  EXPECT_EQ(world.Evaluate("none").status().code(), absl::StatusCode::kNotFound);
  world.AddDataset("data", {{0, 1}});
  world.AddDataset("labels", {{0, 2}});
  const absl::Status labels = world.Evaluate("labels").status();
  EXPECT_EQ(labels.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(labels.message()), AllOf(HasSubstr("label 2 in row 1"), HasSubstr("classes 0 to 1")));
  world.AddDataset("images", {{0, 1}});
  world.catalog.datasets["images"].input_shape = {3, 32, 32};
  const absl::Status shape = world.Evaluate("data", "images").status();
  EXPECT_EQ(shape.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(shape.message()), AllOf(HasSubstr("[3, 32, 32]"), HasSubstr("takes [1]")));
  world.AddDataset("gone", {{0, 1}});
  ASSERT_TRUE(world.blobs.Delete("gone0").ok());
  EXPECT_EQ(world.Evaluate("gone").status().code(), absl::StatusCode::kDataLoss);
}

// The answers of Evaluate and Check for a query so far.
struct Asked {
  Asked(World* world, const EvaluateQuery& query) {
    cancel = world->evaluator.Evaluate(
        query, absl::Seconds(600), [](const auto&) {},
        [this](const absl::StatusOr<Evaluation>& result) { evaluated = result.status(); });
    world->evaluator.Check(query, absl::Seconds(1),
                           [this](const absl::StatusOr<int64_t>& version) { checked = version.status(); });
    world->executor.RunUntilIdle();
  }
  std::optional<absl::Status> evaluated, checked;
  std::function<void()> cancel;
};

// Two rows of two classes and three averages: 2 (4 + 96 + 64) bytes. The bound holds such a one and a half.
TEST(Evaluation, AllTogetherHoldTheRowsOfTheirBoundAlone) {
  World world(ByHand, std::nullopt, {2, 1}, Classes{2}, 492);
  world.AddDataset("data", {{0, 1}});
  world.AddDataset("large", {{0, 1, 0, 1}});
  world.port.workers = {{"a", Mood::kHangs}};
  const Asked never(&world, Asking("large"));
  EXPECT_TRUE(absl::IsInvalidArgument(*never.evaluated)) << *never.evaluated;
  EXPECT_TRUE(absl::IsInvalidArgument(*never.checked)) << "it is refused before it is an operation";
  const Asked first(&world, Asking("data")), second(&world, Asking("data"));
  EXPECT_FALSE(first.evaluated.has_value()) << "it runs";
  EXPECT_TRUE(absl::IsResourceExhausted(*second.evaluated)) << *second.evaluated;
  EXPECT_EQ(ReasonOf(*second.evaluated), "QUEUE_FULL");
  EXPECT_EQ(BoundOf(*second.evaluated), "evaluation_bytes");
  EXPECT_TRUE(second.checked->ok()) << "it may wait its turn";
  first.cancel();
  world.executor.RunUntilIdle();
  const Asked third(&world, Asking("data"));
  EXPECT_FALSE(third.evaluated.has_value()) << "what the first one held is free";
  third.cancel();
  world.executor.RunUntilIdle();
}

// The second chain returns NaN for row 1 and changed rows from 1000 on: a network that divides 0 by 0 on a blank image,
// or one that diverged.
std::vector<double> BlankIsNaN(const ChainId& chain, DrawKind, int64_t, int64_t row) {
  if (chain.index == 1 && (row == 1 || row >= 1000)) return {std::nan(""), std::nan("")};
  return {0.75, 0.25};
}

TEST(Evaluation, FailsForRowsThatAreNotFiniteAndNamesThem) {
  World world(BlankIsNaN);
  world.AddDataset("data", {{0, 1, 0}});
  EvaluateQuery query = Asking("data");
  query.curve_points = 2;
  const absl::Status status = world.Evaluate(query).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(ReasonOf(status), "NOT_FINITE");
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("job-aaaaaa"), HasSubstr("1 of 3 rows of data set data, the first is row 1"),
                    HasSubstr("theta of chain 1, theta_a of chain 1"), HasSubstr("Leave those chains")));
}

TEST(Evaluation, FailsForRowsThatAreNotFiniteInAnyDataSet) {
  World world(BlankIsNaN);
  world.AddImages("fine", {0});
  world.AddImages("data", {0, 1, 0});
  for (const bool ood : {true, false}) {
    const absl::Status status = world.Evaluate("fine", ood ? "data" : "", {}, ood ? "" : "data").status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("1 of 3 rows of data set data")) << ood;
  }
  EvaluateQuery query = Asking("fine");
  query.corruptions = {"fog"};
  EXPECT_THAT(std::string(world.Evaluate(query).status().message()),
              HasSubstr("1 of 1 rows of data set fine changed by fog 1"));
  World numbers(
      [](const ChainId& chain, DrawKind kind, int64_t draw, int64_t row) { return BlankIsNaN(chain, kind, draw, row); },
      std::nullopt, {2, 1}, Numbers());
  numbers.AddNumbers("data", {3, 9, 4});
  EXPECT_THAT(std::string(numbers.Evaluate("data").status().message()), HasSubstr("1 of 3 rows"));
}

TEST(Evaluation, EndsAtTheDeadlineAndWhenCancelled) {
  World world(ByHand);
  world.AddDataset("data", {{0, 1}});
  world.port.workers = {{"a", Mood::kHangs}};
  EXPECT_EQ(world.Evaluate("data").status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(world.port.cancelled, SizeIs(1));

  absl::Status status;
  const auto cancel = world.evaluator.Evaluate(
      {.draws = {}, .kinds = {}, .dataset = "data"}, absl::Seconds(600), [](const auto&) {},
      [&](const absl::StatusOr<Evaluation>& r) { status = r.status(); });
  world.executor.RunUntilIdle();
  cancel();
  world.executor.RunUntilIdle();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(world.port.num_open(), 0u);
}

}  // namespace
}  // namespace chainfleet
