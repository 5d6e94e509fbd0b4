#include "tests/support/stationary_job.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "core/domain/sweep_points.h"
#include "worker/numerics/arena/device.h"

namespace chainfleet::testing {

JobSpec StationaryJob::Spec() const {
  JobSpec spec;
  spec.name = "law";
  spec.model.kind = GaussianPotential{dimension, k};
  spec.sampler = sampler;
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{step_size}};
  spec.temperature = temperature;
  spec.burn_in.steps = burn_in;
  spec.num_steps = burn_in + draws;
  spec.collect.every_steps = 1;
  spec.chains = chains;
  spec.sweep = sweep;
  spec.seed = 20240607;
  return spec;
}

void RunJob(const StationaryJob& job, const std::function<void(int32_t chain, const Draw&)>& take) {
  (void)InitializeDevice("cpu", 1);  // threads would only wait for each other on such short rows
  auto plan = std::make_shared<JobPlan>();
  plan->job = "law-aaaaaa";
  plan->spec = job.Spec();
  const auto batch = ChainBatch::Create(plan, nullptr, "cpu");
  ASSERT_TRUE(batch.ok()) << batch.status();
  const int32_t num_chains = NumChains(plan->spec);
  for (int32_t chain = 0; chain < num_chains; ++chain) ASSERT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  int64_t taken = 0;
  for (int64_t step = 0; step < job.burn_in + job.draws; ++step) {
    const auto reports = (*batch)->Step();
    ASSERT_TRUE(reports.ok()) << reports.status();
    for (const RowReport& report : *reports) {
      if (!report.draw_due) continue;
      take(report.chain, (*batch)->TakeDraw(report.chain));
      ++taken;
    }
  }
  EXPECT_EQ(taken, num_chains * job.draws);
}

std::vector<MomentTraces> RunForMoments(const StationaryJob& job) {
  const JobSpec spec = job.Spec();
  std::vector<MomentTraces> of_point(NumPoints(job.sweep), MomentTraces{.chains = job.chains});
  std::vector<MomentTraces> of_chain(NumChains(spec));
  RunJob(job, [&](int32_t chain, const Draw& draw) {
    const auto mean = [&](const std::vector<float>& a, const std::vector<float>& b) {
      return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / static_cast<double>(a.size());
    };
    const std::vector<float>& theta = draw.theta[0];
    of_chain[chain].theta.push_back(mean(theta, theta));
    if (draw.theta.size() == 1) return;
    of_chain[chain].cross.push_back(mean(theta, draw.theta[1]));
    of_chain[chain].theta_a.push_back(mean(draw.theta[1], draw.theta[1]));
  });
  for (int32_t chain = 0; chain < NumChains(spec); ++chain) {
    MomentTraces& point = of_point[PointOf(spec, chain)];
    for (auto trace : {&MomentTraces::theta, &MomentTraces::cross, &MomentTraces::theta_a}) {
      (point.*trace).insert((point.*trace).end(), (of_chain[chain].*trace).begin(), (of_chain[chain].*trace).end());
    }
  }
  return of_point;
}

}  // namespace chainfleet::testing
