// Tests the traces of chains through the public interface of a batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/domain/chain_trace.h"
#include "tests/support/regression_dataset.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/batch/potential_factory.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

double Norm(const std::vector<float>& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

std::shared_ptr<JobPlan> RegressionPlan(const ResidentDataset& data, const SamplerSpec& sampler) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "traced-aaaaaa";
  plan->dataset = data.description();
  plan->normalisation = data.description().normalisation;
  plan->spec.name = "traced";
  plan->spec.dataset = "table";
  plan->spec.model.kind = PotentialKind(LinearRegressionPotential{0.5});
  plan->spec.prior.kind = GaussianPrior{1};
  plan->spec.sampler = sampler;
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.01}};
  plan->spec.batch_size = 4;
  plan->spec.num_steps = 12;
  plan->spec.burn_in.steps = 5;
  plan->spec.collect.every_steps = 3;
  plan->spec.trace_every = 1;
  plan->spec.chains = 2;
  return plan;
}

// The sampler keeps the steps whose statistic is below the threshold. Only these are traced: after other steps the
// arena of the draws is stale, and before the first kept step it is zero.
TEST(ChainTracer, TracesTheStatesThatGradientUncertaintyKeepsAndNoOther) {
  const auto data = SyntheticImages(64, {1, 8, 8});
  auto plan = RegressionPlan(*data, {GradientUncertaintySpec{.threshold = 0}});
  plan->spec.model.kind = BuiltinModel{"mlp", {8}};
  plan->spec.collect.every_steps = 1;
  const auto batch = ChainBatch::Create(plan, data, "cpu");
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_EQ((*batch)->trace_quantities()[1], "gradient_uncertainty");
  ASSERT_EQ((*batch)->trace_quantities()[2], "theta.norm");
  ASSERT_TRUE((*batch)->AddChain(0, std::nullopt).ok());
  int kept = 0;
  for (int64_t step = 1; step <= 12; ++step) {
    const auto reports = (*batch)->Step();
    ASSERT_TRUE(reports.ok()) << reports.status();
    const RowReport& report = reports->front();
    EXPECT_FALSE(step <= 5 && report.draw_due) << "burn-in";
    ASSERT_EQ(report.trace.empty(), !report.draw_due) << step;
    if (!report.draw_due) continue;
    EXPECT_LT(report.trace[1], 0) << step;
    EXPECT_NEAR(report.trace[2], Norm((*batch)->TakeDraw(0).theta[0]), 1e-5) << step;
    ++kept;
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 7);
}

TEST(ChainTracer, GivesEnergyNormsAndLogLikelihoodsAtFixedRows) {
  const auto data = Resident(MakeTable(24, 2, false));
  const auto plan = RegressionPlan(*data, {EmcmcSpec{0.4}});
  const auto batch = ChainBatch::Create(plan, data, "cpu");
  ASSERT_TRUE(batch.ok()) << batch.status();
  const std::vector<int64_t> rows = {3, 9, 15, 21};
  EXPECT_THAT(
      (*batch)->trace_quantities(),
      ElementsAre("energy", "anchor_distance", "theta.norm", "theta.log_likelihood[3]", "theta.log_likelihood[9]",
                  "theta.log_likelihood[15]", "theta.log_likelihood[21]", "theta.weights[0]", "theta.weights[1]",
                  "theta.intercept", "theta_a.norm", "theta_a.log_likelihood[3]", "theta_a.log_likelihood[9]",
                  "theta_a.log_likelihood[15]", "theta_a.log_likelihood[21]", "theta_a.weights[0]",
                  "theta_a.weights[1]", "theta_a.intercept"));
  const auto potential = MakePotential(*plan, data, Device{});
  ASSERT_TRUE(potential.ok()) << potential.status();
  for (int chain = 0; chain < 2; ++chain) ASSERT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  for (int64_t step = 1; step <= 12; ++step) {
    const auto reports = (*batch)->Step();
    ASSERT_TRUE(reports.ok()) << reports.status();
    for (const RowReport& report : *reports) {
      if (step <= 5) {
        EXPECT_THAT(report.trace, IsEmpty()) << "burn-in";
        continue;
      }
      ASSERT_EQ(report.trace.size(), 18u) << step;
      EXPECT_EQ(report.trace[0], report.stats.energy);
      EXPECT_EQ(report.trace[1], report.stats.anchor_distance);
      const Draw draw = (*batch)->TakeDraw(report.chain);
      for (size_t kind = 0; kind < 2; ++kind) {
        const double* traced = report.trace.data() + 2 + 8 * kind;
        EXPECT_NEAR(traced[0], Norm(draw.theta[kind]), 1e-5);
        ThetaArena theta((*potential)->layout(), Device{});
        theta.AddRow();
        theta.WriteRow(0, draw.theta[kind]);
        std::vector<double> losses(4);
        (*potential)->Losses(theta, {.ids = rows.data(), .size = 4}, losses.data());
        for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(traced[1 + i], -losses[i], 1e-9);
        for (size_t p = 0; p < 3; ++p) EXPECT_EQ(traced[5 + p], draw.theta[kind].at(p));
      }
    }
  }
}

// Compares the trace of a network, its prediction for the target of each row, with the loss.
TEST(ChainTracer, GivesPredictionsOfANetworkAtFixedRows) {
  const std::vector<int64_t> rows = {3, 9, 15, 21};
  for (const bool labels : {true, false}) {
    const auto data = Resident(MakeTable(24, 2, labels));
    auto plan = RegressionPlan(*data, {SgldSpec{}});
    plan->spec.model = {BuiltinModel{"mlp", {8}}};
    if (!labels) plan->spec.model.likelihood = GaussianLikelihood{.variance = 0.25};
    const auto batch = ChainBatch::Create(plan, data, "cpu");
    ASSERT_TRUE(batch.ok()) << batch.status();
    const std::string name = labels ? "theta.probability[" : "theta.log_density[";
    EXPECT_THAT((*batch)->trace_quantities(),
                ElementsAre("energy", "theta.norm", name + "3]", name + "9]", name + "15]", name + "21]"));
    for (const std::string& quantity : (*batch)->trace_quantities()) {
      EXPECT_EQ(IsOfPredictions(quantity), quantity.starts_with(name));
    }
    ASSERT_TRUE((*batch)->AddChain(0, std::nullopt).ok());
    absl::StatusOr<std::vector<RowReport>> reports;
    for (int64_t step = 1; step <= 6; ++step) reports = (*batch)->Step();
    ASSERT_TRUE(reports.ok()) << reports.status();
    const auto potential = MakePotential(*plan, data, Device{});
    ASSERT_TRUE(potential.ok()) << potential.status();
    ThetaArena theta((*potential)->layout(), Device{});
    theta.AddRow();
    theta.WriteRow(0, (*batch)->TakeDraw(0).theta[0]);
    std::vector<double> losses(4);
    (*potential)->Losses(theta, {.ids = rows.data(), .size = 4}, losses.data());
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(reports->front().trace[2 + i], labels ? std::exp(-losses[i]) : -losses[i], 1e-9) << name << i;
    }
  }
}

// A chain's values do not depend on other chains of the batch, and continue after a resume.
TEST(ChainTracer, ValuesMatchTheChainAlone) {
  const auto data = Resident(MakeTable(24, 2, false));
  const auto plan = RegressionPlan(*data, {SgldSpec{}});
  const auto together = ChainBatch::Create(plan, data, "cpu"), alone = ChainBatch::Create(plan, data, "cpu");
  ASSERT_TRUE(together.ok() && alone.ok());
  for (int chain = 0; chain < 2; ++chain) ASSERT_TRUE((*together)->AddChain(chain, std::nullopt).ok());
  for (int64_t step = 1; step <= 6; ++step) ASSERT_TRUE((*together)->Step().ok());
  ASSERT_TRUE((*alone)->AddChain(1, (*together)->SaveResumePoint(1)).ok());
  for (int64_t step = 7; step <= 12; ++step) {
    const auto both = (*together)->Step(), one = (*alone)->Step();
    ASSERT_TRUE(both.ok() && one.ok());
    EXPECT_FALSE((*one)[0].trace.empty()) << step;
    EXPECT_EQ((*both)[1].trace, (*one)[0].trace) << step;
  }
}

TEST(ChainTracer, PotentialsWithoutDataHaveNoRowsAndSmallOnesTheirParameters) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "traced-aaaaaa";
  plan->spec.name = "traced";
  plan->spec.model.kind = GaussianPotential{3, 2.0};
  plan->spec.sampler = {SgldSpec{}};
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.1}};
  plan->spec.num_steps = 4;
  const auto quantities = [&] {
    const auto batch = ChainBatch::Create(plan, nullptr, "cpu");
    EXPECT_TRUE(batch.ok()) << batch.status();
    return (*batch)->trace_quantities();
  };
  EXPECT_THAT(quantities(), ElementsAre("energy", "theta.norm", "theta[0]", "theta[1]", "theta[2]"));
  plan->spec.model.kind = GaussianPotential{kMostTracedParameters, 2.0};
  EXPECT_EQ(quantities().size(), 2 + static_cast<size_t>(kMostTracedParameters));
  plan->spec.model.kind = GaussianPotential{kMostTracedParameters + 1, 2.0};
  EXPECT_THAT(quantities(), ElementsAre("energy", "theta.norm")) << "too many";
}

}  // namespace
}  // namespace chainfleet
