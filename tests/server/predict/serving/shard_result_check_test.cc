#include "server/predict/serving/shard_result_check.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/predict/fake_serving.h"

namespace chainfleet {
namespace {

// Two rows, chains 0 (two draws) and 1 (one), both kinds, two classes.
ShardRequest Request() {
  auto plan = std::make_shared<PredictPlan>();
  plan->targets = Classes{2};
  ShardRequest request;
  request.plan = plan;
  request.chains = {{.chain = {"job-aaaaaa", 0}, .num_draws = 2}, {.chain = {"job-aaaaaa", 1}, .num_draws = 1}};
  request.kinds = {DrawKind::kTheta, DrawKind::kThetaA};
  request.rows = DatasetRows{{}, 0, 2};
  request.per_draw_scores = true;
  return request;
}

ShardResult Answer(const ShardRequest& request) {
  const std::vector<int32_t> labels = {0, 1};
  ShardResult result;
  for (const ChainDraws& chain : request.chains) {
    std::vector<std::pair<int64_t, double>> draws;
    for (int64_t i = 0; i < chain.num_draws; ++i) draws.emplace_back(i, 1);
    for (const DrawKind kind : request.kinds) {
      result.partials.push_back(
          testing::SumDraws(chain.chain, kind, draws, {0, 1}, 2, testing::ArbitraryProbabilities(2), &labels));
    }
  }
  return result;
}

ShardRequest WithSegment(ShardRequest request) {
  request.chains[0].segments.resize(1);
  request.chains[0].segments[0].object.name = "job-aaaaaa/0/0";
  return request;
}

TEST(CheckShardResult, TakesOneSumForEachChainAndKind) {
  EXPECT_TRUE(CheckShardResult(Request(), Answer(Request())).ok());
}

TEST(CheckShardResult, RefusesEveryDefect) {
  using Defect = std::function<void(ShardResult*)>;
  const std::vector<std::pair<std::string, Defect>> defects = {
      {"a sum is missing", [](ShardResult* r) { r->partials.pop_back(); }},
      {"a sum came twice", [](ShardResult* r) { r->partials.back() = r->partials.front(); }},
      {"another chain", [](ShardResult* r) { r->partials.back().chain.index = 2; }},
      {"another job", [](ShardResult* r) { r->partials.back().chain.job = "job-bbbbbb"; }},
      {"a draw too few", [](ShardResult* r) { r->partials[0].num_draws = 1; }},
      {"a draw too many", [](ShardResult* r) { r->partials[0].num_draws = 3; }},
      {"fewer rows", [](ShardResult* r) { r->partials[0].num_rows = 1; }},
      {"more classes", [](ShardResult* r) { r->partials[0].classes().num_classes = 3; }},
      {"numbers",
       [](ShardResult* r) {
         r->partials[0].sums = NumberSums{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
       }},
      {"short sum_wp", [](ShardResult* r) { r->partials[0].classes().sum_wp.pop_back(); }},
      {"short sum_wp2", [](ShardResult* r) { r->partials[0].classes().sum_wp2.pop_back(); }},
      {"short sum_wh", [](ShardResult* r) { r->partials[0].classes().sum_wh.pop_back(); }},
      {"short votes", [](ShardResult* r) { r->partials[0].classes().votes.pop_back(); }},
      {"long log likelihoods", [](ShardResult* r) { r->partials[0].draw_log_likelihood.push_back(0); }},
      {"no hits", [](ShardResult* r) { r->partials[0].classes().draw_hits.clear(); }},
      {"no weight", [](ShardResult* r) { r->partials[0].sum_w = 0; }},
      {"a weight that is not a number", [](ShardResult* r) { r->partials[0].sum_w = std::nan(""); }},
  };
  for (const auto& [what, make] : defects) {
    ShardResult result = Answer(Request());
    make(&result);
    const absl::Status status = CheckShardResult(Request(), result);
    EXPECT_TRUE(absl::IsInternal(status)) << what;
    EXPECT_EQ(ReasonOf(status), "BAD_SHARD_RESULT") << what;
  }
}

TEST(CheckShardResult, CountsEveryKthDraw) {
  ShardRequest request = Request();
  request.chains[0].every = 2;
  ShardResult result = Answer(Request());
  EXPECT_EQ(ReasonOf(CheckShardResult(request, result)), "BAD_SHARD_RESULT") << "two draws of chain 0, one was asked";
  result.partials[0] = result.partials[2];
  result.partials[1] = result.partials[3];
  result.partials[0].chain.index = result.partials[1].chain.index = 0;
  EXPECT_TRUE(CheckShardResult(request, result).ok());
}

TEST(CheckShardResult, WantsASumForEveryEntryOfAChainInTheirOrder) {
  ShardRequest request = WithSegment(Request());
  request.chains[1].chain = request.chains[0].chain;  // two draws, then one
  ShardResult result = Answer(request);
  EXPECT_TRUE(CheckShardResult(request, result).ok());
  std::swap(result.partials[0], result.partials[2]);
  EXPECT_EQ(ReasonOf(CheckShardResult(request, result)), "BAD_SHARD_RESULT") << "in another order";
  std::swap(result.partials[0], result.partials[2]);
  result.partials.push_back(result.partials[2]);
  EXPECT_EQ(ReasonOf(CheckShardResult(request, result)), "BAD_SHARD_RESULT") << "one more than entries";
  result.partials.resize(3);
  EXPECT_EQ(ReasonOf(CheckShardResult(request, result)), "BAD_SHARD_RESULT") << "one less";
  result.partials.erase(result.partials.begin(), result.partials.begin() + 2);
  result.corrupt_objects = {"job-aaaaaa/0/0"};
  EXPECT_TRUE(CheckShardResult(request, result).ok()) << "the draws of the first are lost";
}

TEST(CheckShardResult, WantsMembersOfTheRightSizesIfAskedAndOnlyThen) {
  ShardRequest request = Request();
  ShardResult good = Answer(request);
  for (PartialPrediction& p : good.partials) {
    const auto draws = static_cast<size_t>(p.num_draws);
    p.members = Members{.chain = p.chain,
                        .kind = p.kind,
                        .weights = std::vector<double>(draws, 1),
                        .outputs = ClassMembers{std::vector<float>(draws * 2 * 2)}};
  }
  EXPECT_EQ(ReasonOf(CheckShardResult(request, good)), "BAD_SHARD_RESULT") << "not asked for";
  request.members = true;
  EXPECT_TRUE(CheckShardResult(request, good).ok());
  using Defect = std::function<void(PartialPrediction*)>;
  for (const Defect& make : std::vector<Defect>{
           [](auto* p) { p->members.reset(); }, [](auto* p) { p->members->weights.pop_back(); },
           [](auto* p) { std::get<ClassMembers>(p->members->outputs).probabilities.pop_back(); },
           [](auto* p) { p->members->outputs = NumberMembers(); },
           [](auto* p) {
             p->members->outputs = NumberMembers{{0}, {0}};
           },
           [](auto* p) { p->members->chain.index = 7; }, [](auto* p) { p->members->kind = DrawKind::kThetaA; }}) {
    ShardResult result = good;
    make(&result.partials[0]);
    EXPECT_EQ(ReasonOf(CheckShardResult(request, result)), "BAD_SHARD_RESULT");
  }
}

TEST(CheckShardResult, WantsGradientsOfTheRightSizesIfAskedAndOnlyThen) {
  ShardRequest request = Request();
  ShardResult good = Answer(request);
  const auto values = static_cast<size_t>(GradientValues(*request.plan));
  for (PartialPrediction& p : good.partials) p.sum_wg.resize(2 * values);
  EXPECT_EQ(ReasonOf(CheckShardResult(request, good)), "BAD_SHARD_RESULT") << "not asked for";
  request.gradients = true;
  EXPECT_TRUE(CheckShardResult(request, good).ok());
  good.partials[0].sum_wg.pop_back();
  EXPECT_EQ(ReasonOf(CheckShardResult(request, good)), "BAD_SHARD_RESULT");
}

TEST(CheckShardResult, RefusesEveryDefectOfSumsOverNumbers) {
  ShardRequest request = Request();
  auto plan = std::make_shared<PredictPlan>(*request.plan);
  plan->targets = Numbers();
  request.plan = plan;
  request.chains.pop_back();
  request.kinds.pop_back();
  const std::vector<float> targets = {0.5, 1.5};
  const ShardResult good = {
      .shard_id = 0,
      .partials = {testing::SumNumberDraws(request.chains[0].chain, DrawKind::kTheta, {{0, 1}, {1, 1}}, {0, 1},
                                           testing::ArbitraryProbabilities(2), &targets)},
      .corrupt_objects = {}};
  EXPECT_TRUE(CheckShardResult(request, good).ok());
  const auto expect_refused = [&](const std::function<void(PartialPrediction*)>& spoil) {
    ShardResult result = good;
    spoil(&result.partials[0]);
    EXPECT_EQ(ReasonOf(CheckShardResult(request, result)), "BAD_SHARD_RESULT");
  };
  for (const auto array :
       {&NumberSums::sum_wm, &NumberSums::sum_wm2, &NumberSums::sum_wv, &NumberSums::log_sum_wd, &NumberSums::sum_wc}) {
    expect_refused([array](PartialPrediction* p) { (p->numbers().*array).pop_back(); });
  }
  expect_refused([](PartialPrediction* p) { p->draw_log_likelihood.pop_back(); });
  expect_refused([](PartialPrediction* p) { p->sums = ClassSums(); });  // no class
  request.per_draw_scores = false;
  EXPECT_FALSE(CheckShardResult(request, good).ok());
}

TEST(CheckShardResult, RefusesKindsAndScoresNobodyAskedFor) {
  ShardRequest request = Request();
  request.kinds = {DrawKind::kTheta};
  EXPECT_FALSE(CheckShardResult(request, Answer(Request())).ok());
  request = Request();
  request.per_draw_scores = false;
  EXPECT_FALSE(CheckShardResult(request, Answer(Request())).ok());
}

TEST(CheckShardResult, LetsOnlyAResultWithCorruptObjectsLackDraws) {
  ShardResult result = Answer(Request());
  result.partials[0] =
      testing::SumDraws(result.partials[0].chain, DrawKind::kTheta, {}, {0, 1}, 2, testing::ArbitraryProbabilities(2));
  result.partials.pop_back();
  EXPECT_FALSE(CheckShardResult(Request(), result).ok());
  result.corrupt_objects = {"job-aaaaaa/0/0"};
  EXPECT_TRUE(CheckShardResult(WithSegment(Request()), result).ok());
  result.partials[0].num_draws = 3;
  result.partials[0].sum_w = 3;
  result.partials[0].draw_log_likelihood.resize(3);
  result.partials[0].classes().draw_hits.resize(3);
  EXPECT_FALSE(CheckShardResult(WithSegment(Request()), result).ok()) << "but never have too many";
}

TEST(CheckShardResult, RefusesCorruptObjectsThatTheRequestDoesNotName) {
  const ShardRequest request = WithSegment(Request());
  ShardResult result = Answer(request);
  result.corrupt_objects = {"job-aaaaaa/0/0"};
  EXPECT_TRUE(CheckShardResult(request, result).ok());
  result.corrupt_objects.push_back("job-bbbbbb/0/0");
  EXPECT_EQ(ReasonOf(CheckShardResult(request, result)), "BAD_SHARD_RESULT");
}

TEST(CheckShardResult, RefusesFlatnessWithMorePointsThanThePlan) {
  ShardRequest request = Request();
  request.flatness = FlatnessPlan{.fisher_points = 2, .line_points = 3};
  const auto check = [&](size_t ranks, size_t points) {
    ShardResult result;
    for (const ChainDraws& chain : request.chains) {
      Flatness& flatness = result.flatness.emplace_back();
      flatness.chain = chain.chain;
      flatness.fisher_ranks.resize(ranks);
      flatness.fisher_values.resize(ranks);
      flatness.line_positions.resize(points);
      flatness.random_line.resize(points);
    }
    return ReasonOf(CheckShardResult(request, result));
  };
  EXPECT_EQ(check(2, 3), "");
  EXPECT_EQ(check(1, 3), "") << "a small network has fewer ranks";
  EXPECT_EQ(check(3, 3), "BAD_SHARD_RESULT");
  EXPECT_EQ(check(2, 4), "BAD_SHARD_RESULT");
}

TEST(NumRows, IsThatOfTheInputsOrOfTheDataSet) {
  ShardRequest request = Request();
  EXPECT_EQ(NumRows(request), 2);
  request.rows.reset();
  request.inputs = testing::NumberedRows(5);
  EXPECT_EQ(NumRows(request), 5);
}

}  // namespace
}  // namespace chainfleet
