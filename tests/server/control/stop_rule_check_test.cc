#include "server/control/stop_rule_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace chainfleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Diagnostic Found(const std::string& quantity, double rhat, double ess_bulk, double ess_tail) {
  return {.quantity = quantity, .rhat = rhat, .ess_bulk = ess_bulk, .ess_tail = ess_tail};
}

class StopRuleCheck : public ::testing::Test {
 protected:
  std::optional<std::string> Why() {
    return WhyEnough(rule_, {.chains = chains_, .num_draws = num_draws_, .traces = &traces_});
  }

  StopRuleSpec rule_{.rhat_below = 1.01, .ess_above = 400};
  std::vector<int32_t> chains_ = {0, 1, 3};
  int64_t num_draws_ = 50;
  PointDiagnosis traces_{.looked_at = {0, 1, 3},
                         .values = 250,
                         .diagnostics = {Found("energy", 1.004, 900, 412), Found("theta_a.norm", 1.001, 500, 800)}};
};

TEST_F(StopRuleCheck, ReportsTheEvidence) {
  EXPECT_THAT(
      Why(),
      Optional(std::string("R-hat 1.004 is below 1.01, ESS 412 above 400, over 250 values of each of 3 chains")));
  rule_.rhat_below.reset();
  EXPECT_THAT(Why(), Optional(HasSubstr("ESS 412 is above 400")));
  rule_ = {.rhat_below = 1.01};
  EXPECT_THAT(Why(), Optional(HasSubstr("R-hat 1.004 is below 1.01, over")));
}

TEST_F(StopRuleCheck, EveryQuantityMustHold) {
  traces_.diagnostics[1].rhat = 1.01;
  EXPECT_EQ(Why(), std::nullopt) << "not below";
  traces_.diagnostics[1].rhat = kNan;
  EXPECT_EQ(Why(), std::nullopt);
  traces_.diagnostics[1].rhat = 1;
  traces_.diagnostics[1].ess_bulk = 400;
  EXPECT_EQ(Why(), std::nullopt) << "not above";
  traces_.diagnostics[1].ess_bulk = 401;
  EXPECT_THAT(Why(), Optional(HasSubstr("ESS 401")));
  traces_.diagnostics[0].ess_tail = kNan;
  EXPECT_EQ(Why(), std::nullopt);
}

TEST_F(StopRuleCheck, NestedRhatMustBeKnownAndBelowItsBound) {
  rule_ = {.ess_above = 400, .nested_rhat_below = 1.01};
  EXPECT_EQ(Why(), std::nullopt) << "the chains share no starts";
  traces_.diagnostics[0].nested_rhat = 1.002;
  EXPECT_EQ(Why(), std::nullopt);
  traces_.diagnostics[1].nested_rhat = 1.01;
  EXPECT_EQ(Why(), std::nullopt) << "not below";
  traces_.diagnostics[1].nested_rhat = 1.0075;
  traces_.diagnostics[1].rhat = 3;
  EXPECT_THAT(Why(), Optional(HasSubstr("nested R-hat 1.0075 is below 1.01, ESS 412 above 400, over")));
  rule_.rhat_below = 1.01;
  EXPECT_EQ(Why(), std::nullopt) << "both are asked for";
}

TEST_F(StopRuleCheck, EveryContinuingChainMustBeUsed) {
  chains_.push_back(4);
  EXPECT_EQ(Why(), std::nullopt);
  traces_.without_room = {2, 4};
  EXPECT_NE(Why(), std::nullopt) << "nobody waits for what cannot be looked at";
  chains_ = {1};
  EXPECT_NE(Why(), std::nullopt) << "the others have ended";
}

TEST_F(StopRuleCheck, FewValuesAreNotEnough) {
  traces_.values = kFewestValuesToStop - 1;
  EXPECT_EQ(Why(), std::nullopt);
  traces_.values = kFewestValuesToStop;
  EXPECT_NE(Why(), std::nullopt);
}

TEST_F(StopRuleCheck, NothingThatChangesIsNoAgreement) {
  traces_.diagnostics.clear();
  EXPECT_EQ(Why(), std::nullopt);
}

// The chains of a network may agree in its predictions but never in their weights.
TEST_F(StopRuleCheck, QuantitiesThatDescribeDecideNothing) {
  traces_.diagnostics[1] = Found("theta.norm", 3, 8, 8);
  EXPECT_EQ(Why(), std::nullopt);
  traces_.diagnostics[1].descriptive = true;
  EXPECT_THAT(Why(), Optional(HasSubstr("R-hat 1.004 is below 1.01, ESS 412 above 400")));
  traces_.diagnostics[0].descriptive = true;
  EXPECT_EQ(Why(), std::nullopt) << "nothing decides";
}

TEST_F(StopRuleCheck, DrawsAreCountedWithoutTraces) {
  rule_.max_draws = 51;
  EXPECT_EQ(WhyEnough(rule_, {.chains = chains_, .num_draws = 50}), std::nullopt);
  EXPECT_THAT(WhyEnough(rule_, {.chains = chains_, .num_draws = 52}),
              Optional(std::string("max_draws 51 is reached: 52 committed")));
  EXPECT_THAT(Why(), Optional(HasSubstr("R-hat"))) << "either is enough";
}

TEST_F(StopRuleCheck, WithoutARuleNothingIsEnough) {
  rule_ = {};
  EXPECT_EQ(Why(), std::nullopt);
}

}  // namespace
}  // namespace chainfleet
