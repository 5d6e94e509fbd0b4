#include "server/rpc/evaluation_use.h"

#include <string>
#include <vector>

#include "core/scores/conformal.h"
#include "core/wire/stored_message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/selection_query.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// Chains 0, 1 and 2 of version 7 at the point b=2, the second without stacking weight; thresholds 0.001, 0.002, ...
v1::EvaluationOperation Found() {
  v1::EvaluationOperation operation;
  operation.set_id("eval-aaaaaaaaaa");
  operation.set_job_id("job-a");
  operation.set_state(v1::EvaluationOperation::SUCCEEDED);
  v1::DrawSelection* selection = operation.mutable_request()->mutable_selection();
  selection->set_version(7);
  selection->set_include_failed(true);
  selection->add_kinds(v1::THETA_A);
  selection->set_every(2);
  v1::Evaluation* evaluation = operation.mutable_evaluation();
  evaluation->set_version(7);
  evaluation->set_point("b=2");
  evaluation->set_draws_used(12);
  evaluation->set_draws_in_version(12);
  for (int32_t chain = 0; chain < 3; ++chain) {
    v1::ChainWeight* weight = evaluation->add_weights();
    weight->mutable_chain()->set_index(chain);
    weight->set_stacking(chain == 1 ? 0 : 0.5);
    weight->set_pseudo_bma(chain == 1 ? 0.8 : 0.1);
  }
  for (int level = 1; level <= kConformalLevels; ++level) evaluation->add_conformal_thresholds(0.001 * level);
  return operation;
}

PredictQuery Asked() { return {.draws = {.job = "job-a"}, .kinds = {}}; }

v1::PredictRequest Weighted() {
  v1::PredictRequest request;
  request.mutable_selection()->set_weights("eval-aaaaaaaaaa");
  return request;
}
v1::PredictRequest Covered(double level = 0) {
  v1::PredictRequest request;
  request.set_conformal("eval-aaaaaaaaaa");
  request.set_conformal_level(level);
  return request;
}

std::string Refusal(const v1::EvaluationOperation& evaluation, const v1::PredictRequest& request,
                    PredictQuery query = Asked()) {
  const absl::Status status = UseEvaluation(evaluation, request, &query).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(EvaluationUse, GivesChainsTheirWeightsAndTheDrawsOfTheEvaluation) {
  PredictQuery query = Asked();
  const auto conformal = UseEvaluation(Found(), Weighted(), &query);
  ASSERT_TRUE(conformal.ok()) << conformal.status();
  EXPECT_THAT(conformal->thresholds, IsEmpty());
  EXPECT_THAT(query.draws.shares, ElementsAre(Pair(0, 0.5), Pair(2, 0.5)));
  EXPECT_THAT(query.draws.chains, ElementsAre(0, 2));
  EXPECT_EQ(query.draws.version, 7);
  EXPECT_EQ(query.draws.point, "b=2");
  EXPECT_TRUE(query.draws.include_failed) << "a failed chain may have weight";
  EXPECT_THAT(query.kinds, ElementsAre(DrawKind::kThetaA)) << "the weights were fitted to these";
  EXPECT_EQ(query.draws.every, 0) << "the caller's choice";
  EXPECT_FALSE(query.with_errors);
}

TEST(EvaluationUse, KeepsTheChoiceOfChainsAndKinds) {
  v1::PredictRequest request = Weighted();
  request.mutable_selection()->set_pseudo_bma(true);
  PredictQuery query{.draws = {.job = "job-a", .version = 7, .chains = {1, 2}}, .kinds = {DrawKind::kTheta}};
  ASSERT_TRUE(UseEvaluation(Found(), request, &query).ok());
  EXPECT_THAT(query.draws.shares, ElementsAre(Pair(1, 0.8), Pair(2, 0.1)));
  EXPECT_THAT(query.kinds, ElementsAre(DrawKind::kTheta));
  EXPECT_THAT(Refusal(Found(), Weighted(), {.draws = {.job = "job-a", .chains = {1}}, .kinds = {}}),
              HasSubstr("selection.chains: none of these chains has a weight"));
  EXPECT_THAT(Refusal(Found(), Weighted(), {.draws = {.job = "job-a", .point = "b=1"}, .kinds = {}}),
              HasSubstr("selection.point"));
}

TEST(EvaluationUse, RefusesEvaluationsOfOtherDrawsOrWithoutTheFinding) {
  EXPECT_THAT(Refusal(Found(), Weighted(), {.draws = {.job = "job-b"}, .kinds = {}}), HasSubstr("is of job job-a"));
  EXPECT_THAT(Refusal(Found(), Covered(), {.draws = {.job = "job-a", .version = 8}, .kinds = {}}),
              HasSubstr("is of version 7, and version 8 is asked for"));
  v1::EvaluationOperation running = Found();
  running.set_state(v1::EvaluationOperation::RUNNING);
  EXPECT_THAT(Refusal(running, Covered()), HasSubstr("is RUNNING"));
  v1::EvaluationOperation plain = Found();
  plain.mutable_evaluation()->clear_weights();
  plain.mutable_evaluation()->clear_conformal_thresholds();
  EXPECT_THAT(Refusal(plain, Weighted()), HasSubstr("has no weights"));
  EXPECT_THAT(Refusal(plain, Covered()), HasSubstr("had no calibration_dataset"));
}

TEST(Conformal, TakesTheSelectionOfTheEvaluation) {
  PredictQuery query = Asked();
  const auto conformal = UseEvaluation(Found(), Covered(0.25), &query);
  ASSERT_TRUE(conformal.ok()) << conformal.status();
  EXPECT_EQ(query.draws.every, 2);
  EXPECT_TRUE(query.draws.include_failed);
  EXPECT_EQ(query.draws.version, 7);
  EXPECT_THAT(query.kinds, ElementsAre(DrawKind::kThetaA));
  EXPECT_TRUE(query.with_errors);
  Prediction prediction{.draws_used = 12, .draws_in_version = 12, .targets = Classes{3}};
  prediction.scores.of = ClassScores{.mean_probability = {0.8, 0.1, 0.1, 0.3, 0.3, 0.4}};
  ASSERT_TRUE(conformal->AddTo(&prediction).ok());  // the threshold is 0.25
  EXPECT_THAT(prediction.prediction_set, ElementsAre(1, 0, 0, 0, 0, 0));
}

TEST(Conformal, GivesNumbersIntervals) {
  PredictQuery query = Asked();
  const auto conformal = UseEvaluation(Found(), Covered(), &query);  // 0.9
  ASSERT_TRUE(conformal.ok()) << conformal.status();
  Prediction prediction{.draws_used = 12, .draws_in_version = 12, .targets = Numbers()};
  prediction.scores.of = NumberScores{{1, 5}, {3, 0}, {1, 0}};
  ASSERT_TRUE(conformal->AddTo(&prediction).ok());
  EXPECT_THAT(prediction.interval, ElementsAre(1 - 0.9 * 2, 1 + 0.9 * 2, 5, 5));
}

TEST(RenderOperation, GivesTheResultTheIdThatPredictionsName) {
  EvaluationRow row{.id = "eval-aaaaaaaaaa", .request = EncodeStored(v1::EvaluateRequest())};
  const auto running = RenderOperation({row, std::nullopt});
  ASSERT_TRUE(running.ok()) << running.status();
  EXPECT_FALSE(running->has_evaluation());
  row.result = EncodeStored(Found().evaluation());
  const auto done = RenderOperation({row, std::nullopt});
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->evaluation().id(), "eval-aaaaaaaaaa");
  EXPECT_EQ(done->evaluation().version(), 7);
}

// The guarantee is of the very draws that scored the held-out rows.
TEST(Conformal, RefusesOtherDraws) {
  PredictQuery query = Asked();
  const auto conformal = UseEvaluation(Found(), Covered(), &query);
  ASSERT_TRUE(conformal.ok()) << conformal.status();
  Prediction prediction{.draws_used = 12, .draws_in_version = 12, .targets = Numbers()};
  prediction.scores.of = NumberScores{{1}, {3}, {1}};
  EXPECT_TRUE(conformal->AddTo(&prediction).ok());
  for (const auto& [used, in_version] : {std::pair{11, 12}, {12, 9}}) {
    prediction.draws_used = used;
    prediction.draws_in_version = in_version;
    const absl::Status refused = conformal->AddTo(&prediction);
    EXPECT_EQ(ReasonOf(refused), "TOO_FEW_DRAWS");
    EXPECT_THAT(
        std::string(refused.message()),
        HasSubstr(absl::StrCat("averages ", used, " of ", in_version, " draws, and the evaluation averaged 12 of 12")));
  }
}

}  // namespace
}  // namespace chainfleet
