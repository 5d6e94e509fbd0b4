// Kolmogorov-Smirnov tests of thinned draws, through the public job interface: the whole distribution, not only its
// moments. Each test shows of its own draws that a law 2 % wider or narrower fails.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "tests/support/kolmogorov_smirnov.h"
#include "worker/numerics/chain_batch.h"

namespace chainfleet {
namespace {

using testing::CriticalDistance;
using testing::KolmogorovDistance;
using testing::NormalCdf;
using testing::WeightedValue;

constexpr double kK = 2, kT = 0.7;

struct Run {
  SamplerSpec sampler;
  double step_size;
  int64_t dimension, chains, burn_in, thin, draws;
};

// Every coordinate of every draw of a job on U = k |x|^2 / 2, with the draw's weight.
std::vector<WeightedValue> RunJob(const Run& run) {
  (void)InitializeDevice("cpu", 1);  // rows as short as these only make threads wait for each other
  auto plan = std::make_shared<JobPlan>();
  plan->job = "thinned-aaaaaa";
  JobSpec& spec = plan->spec;
  spec.name = "thinned";
  spec.model.kind = GaussianPotential{run.dimension, kK};
  spec.sampler = run.sampler;
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{run.step_size}};
  spec.temperature = kT;
  spec.burn_in.steps = run.burn_in;
  spec.num_steps = run.burn_in + run.thin * run.draws;
  spec.collect.every_steps = run.thin;
  spec.chains = static_cast<int32_t>(run.chains);
  spec.seed = 20250607;
  const auto batch = ChainBatch::Create(plan, nullptr, "cpu");
  EXPECT_TRUE(batch.ok()) << batch.status();
  for (int32_t chain = 0; chain < spec.chains; ++chain) EXPECT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  std::vector<WeightedValue> values;
  const auto take = [&](const DrawTensors& draw) {
    for (const float x : draw.kinds[0]) values.push_back({x, draw.weight});
  };
  for (bool done = false; !done;) {
    const auto reports = (*batch)->Step();
    EXPECT_TRUE(reports.ok()) << reports.status();
    for (const RowReport& report : *reports) {
      EXPECT_TRUE(report.finite);
      if (report.draw_due) take((*batch)->TakeDraw(report.chain));
      done = report.done;
      if (!done) continue;
      if (const auto held = (*batch)->GiveUpHeld(report.chain)) take(*held);
    }
  }
  double weight = 0;
  for (const WeightedValue& value : values) weight += value.weight;
  EXPECT_EQ(weight, static_cast<double>(run.dimension * run.chains * run.draws)) << "kept steps";
  return values;
}

// `correlation`: the inverse of the share of the values that independent ones would need to be as good.
void ExpectNormal(const std::vector<WeightedValue>& values, double variance, double correlation) {
  double weight = 0;
  for (const WeightedValue& value : values) weight += value.weight;
  ASSERT_GE(weight / correlation, 1e5);
  const double critical = CriticalDistance(weight / correlation);
  EXPECT_LT(KolmogorovDistance(values, NormalCdf(variance)), critical);
  for (const double scale : {1.02, 1 / 1.02}) {
    EXPECT_GT(KolmogorovDistance(values, NormalCdf(variance * scale * scale)), critical) << scale << " passes too";
  }
}

// (1 - alpha k)^thin is 2e-9.
TEST(ThinnedDraws, OfSgldHaveTheDistributionOfTheFiniteStep) {
  const double alpha = 0.2;
  const auto values = RunJob({{SgldSpec{}}, alpha, 100'000, 2, 40, 40, 4});
  ExpectNormal(values, kT / (kK * (1 - alpha * kK / 2)), 1);
}

// Trajectories of about a quarter period forget where they began unless they are refused, one in ten: three in a
// row are rare. Unadjusted, leapfrog of this step would be 2 % too wide.
TEST(ThinnedDraws, OfHmcHaveTheExactDistribution) {
  const double epsilon = 0.4 / std::sqrt(kK);
  const auto values = RunJob({{HmcSpec{4}}, epsilon, 40, 400, 6, 3, 45});
  ExpectNormal(values, kT / kK, 1.05);
}

// At the mode a seventh of the states is held from one kept step to the next: without its weight the law would be too
// wide there. One step leaves an autocorrelation of .65 at most, four of .18.
TEST(ThinnedDraws, OfTheRandomWalkWeighWhatTheyWereHeldFor) {
  const auto values = RunJob({{RandomWalkSpec{}}, 2.4 * std::sqrt(kT / kK), 1, 2500, 24, 4, 240});
  ExpectNormal(values, kT / kK, 1.5);
  std::vector<WeightedValue> once = values;
  for (WeightedValue& value : once) value.weight = 1;
  EXPECT_GT(KolmogorovDistance(once, NormalCdf(kT / kK)), CriticalDistance(static_cast<double>(once.size()) / 1.5));
}

}  // namespace
}  // namespace chainfleet
