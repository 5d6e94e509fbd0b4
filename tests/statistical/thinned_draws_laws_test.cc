// Kolmogorov-Smirnov tests of thinned draws, through the public job interface: the whole distribution, not only its
// moments. Each test shows of its own draws that a law 2 % wider or narrower fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/diagnostics/ess.h"
#include "tests/support/kolmogorov_smirnov.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/batch/chain_batch.h"

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

// Every coordinate of every draw of a job on U = k |x|^2 / 2.
struct Kept {
  std::vector<WeightedValue> values;  // with the draw's weight
  std::vector<double> steps;          // [chains x coordinates, kept steps]: the value held at each
  int64_t rows;

  // Returns the number of independent values with the same information about the distribution function, at its least
  // informative point, and at most the number of draws, although draws on alternating sides of the median tell more
  // there.
  double Independent() const {
    const auto ess = [&](double probability) { return EssQuantile({steps, rows}, probability); };
    return std::min({ess(0.25), ess(0.5), ess(0.75), static_cast<double>(steps.size())});
  }
};

Kept RunJob(const Run& run) {
  (void)InitializeDevice("cpu", 1);  // threads would only wait for each other on such short rows
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
  Kept kept{.values = {}, .steps = {}, .rows = run.chains * run.dimension};
  std::vector<std::vector<double>> of_row(kept.rows);
  const auto take = [&](int32_t chain, const Draw& draw) {
    for (int64_t i = 0; i < run.dimension; ++i) {
      const float x = draw.theta[0][i];
      kept.values.push_back({x, draw.weight});
      std::vector<double>& row = of_row[chain * run.dimension + i];
      row.insert(row.end(), static_cast<size_t>(draw.weight), x);
    }
  };
  for (bool done = false; !done;) {
    const auto reports = (*batch)->Step();
    EXPECT_TRUE(reports.ok()) << reports.status();
    for (const RowReport& report : *reports) {
      EXPECT_TRUE(report.finite);
      if (report.draw_due) take(report.chain, (*batch)->TakeDraw(report.chain));
      done = report.done;
      if (!done) continue;
      if (const auto held = (*batch)->GiveUpHeld(report.chain)) take(report.chain, *held);
    }
  }
  for (const std::vector<double>& row : of_row) {
    EXPECT_EQ(row.size(), static_cast<size_t>(run.draws)) << "kept steps";
    kept.steps.insert(kept.steps.end(), row.begin(), row.end());
  }
  return kept;
}

void ExpectNormal(const Kept& kept, double variance) {
  const double independent = kept.Independent(), critical = CriticalDistance(independent);
  ASSERT_GE(independent, 1e5);
  EXPECT_LT(KolmogorovDistance(kept.values, NormalCdf(variance)), critical);
  for (const double scale : {1.02, 1 / 1.02}) {
    EXPECT_GT(KolmogorovDistance(kept.values, NormalCdf(variance * scale * scale)), critical) << scale << " passes too";
  }
}

// (1 - alpha k)^thin is 2e-9.
TEST(ThinnedDraws, SgldHasTheDistributionOfTheFiniteStep) {
  const double alpha = 0.2;
  ExpectNormal(RunJob({{SgldSpec{}}, alpha, 10'000, 2, 40, 40, 40}), kT / (kK * (1 - alpha * kK / 2)));
}

// Trajectories of about a quarter period forget their start unless they are rejected, one in ten, so three rejections
// in a row are rare. Unadjusted leapfrog with this step would be 2 % too wide.
TEST(ThinnedDraws, HmcHasTheExactDistribution) {
  const double epsilon = 0.4 / std::sqrt(kK);
  ExpectNormal(RunJob({{HmcSpec{4}}, epsilon, 40, 400, 6, 3, 45}), kT / kK);
}

// At the mode a seventh of the states is held from one kept step to the next. Without its weight the law would be too
// wide there. One step leaves an autocorrelation of .65 at most, four of .18.
TEST(ThinnedDraws, TheRandomWalkWeighsDrawsByTheTimeTheyWereHeld) {
  const Kept kept = RunJob({{RandomWalkSpec{}}, 2.4 * std::sqrt(kT / kK), 1, 2500, 24, 4, 240});
  ExpectNormal(kept, kT / kK);
  std::vector<WeightedValue> once = kept.values;
  for (WeightedValue& value : once) value.weight = 1;
  EXPECT_GT(KolmogorovDistance(once, NormalCdf(kT / kK)), CriticalDistance(kept.Independent()));
}

}  // namespace
}  // namespace chainfleet
