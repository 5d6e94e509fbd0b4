// Compares reports of a batch on a GPU, which may be one step late, with those of the same batch on the CPU. The GPU is
// a fake one. Its copies to the host are NaN until the host waits for them, so a value that is read too early fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/network_chains.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/batch/checkpoint_codec.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;

constexpr int kChains = 3;

class LateReports : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(InitializeDevice("cuda:0", 1).ok()); }

  LateReports() {
    plan_->spec.prior.kind = GaussianPrior{5};
    plan_->spec.num_steps = 40;
    plan_->spec.chains = kChains;
    plan_->spec.collect.every_steps = 20;
    plan_->spec.trace_every = 10;
  }
  std::unique_ptr<ChainBatch> Batch(const std::string& device) const { return BatchOf(plan_, data_, device, kChains); }
  static std::map<int32_t, RowReport> Step(ChainBatch* batch) {
    std::map<int32_t, RowReport> reports;
    auto stepped = batch->Step();
    EXPECT_TRUE(stepped.ok()) << stepped.status();
    for (RowReport& report : *stepped) reports.emplace(report.chain, std::move(report));
    return reports;
  }

  const std::shared_ptr<const ResidentDataset> data_ = SyntheticImages(96);
  const std::shared_ptr<JobPlan> plan_ =
      NetworkPlan({BuiltinModel{"softmax_regression", {}}}, {EmcmcSpec{1e-4}}, *data_);
};

// Chains leave and join, so rows change places while their values are in flight.
TEST_F(LateReports, ShowThePreviousStepUnlessAValueIsDue) {
  const auto cpu = Batch("cpu"), gpu = Batch("cuda:0");
  std::map<int32_t, double> before;
  for (int step = 1; step <= 40; ++step) {
    const auto own = Step(cpu.get()), reports = Step(gpu.get());
    ASSERT_EQ(reports.size(), own.size());
    const bool is_due =
        std::ranges::any_of(own, [](const auto& row) { return row.second.step == 1 || row.second.step % 10 == 0; });
    for (const auto& [chain, report] : reports) {
      const RowReport& of_cpu = own.at(chain);
      const double energy = is_due ? of_cpu.stats.energy : before.at(chain);
      EXPECT_NEAR(report.stats.energy / energy, 1, 1e-5) << "chain " << chain << ", step " << step;
      if (step > 1) {
        EXPECT_NE(of_cpu.stats.energy, before[chain]);
      }
      EXPECT_EQ(report.trace.empty(), of_cpu.trace.empty());
      if (!report.trace.empty()) {
        EXPECT_NEAR(report.trace[0] / of_cpu.trace[0], 1, 1e-5);
      }
      EXPECT_EQ(report.draw_due, of_cpu.draw_due);
      EXPECT_TRUE(report.finite);
      before[chain] = of_cpu.stats.energy;
    }
    for (const auto& batch : {cpu.get(), gpu.get()}) {
      if (step == 14) batch->RemoveChain(0);
      if (step == 25) {
        ASSERT_TRUE(batch->AddChain(0, std::nullopt).ok());
      }
    }
  }
}

// The prior alone drives a chain from step to step until its network overflows: from 1e28 in a few steps, from a usual
// start in many more.
TEST_F(LateReports, ComeAtMostOneStepLateForARowThatDiverges) {
  plan_->spec.schedule = {StepScale::kStepSize, ConstantSchedule{2}};
  plan_->spec.num_steps = 16;
  plan_->spec.collect.every_steps = plan_->spec.trace_every = 16;
  const auto cpu = Batch("cpu"), gpu = Batch("cuda:0");
  auto checkpoint = DecodeCheckpoint(cpu->SaveResumePoint(1)).value();
  for (std::vector<float>& arena : checkpoint.arenas) {
    for (float& value : arena) value *= 1e30F;
  }
  for (const auto& batch : {cpu.get(), gpu.get()}) {
    batch->RemoveChain(1);
    ASSERT_TRUE(batch->AddChain(1, EncodeCheckpoint(checkpoint)).ok());
  }
  std::vector<int> said_late;
  int diverged = 0;
  for (int step = 1; step <= 8; ++step) {
    const auto own = Step(cpu.get()), reports = Step(gpu.get());
    if (diverged == 0 && !own.at(1).finite) diverged = step;
    EXPECT_EQ(gpu->IsFinite(0), own.at(0).finite);
    if (reports.at(1).finite != own.at(1).finite) said_late.push_back(step);
    EXPECT_EQ(gpu->IsFinite(1), own.at(1).finite) << "whatever the report says, step " << step;
    EXPECT_TRUE(own.at(0).finite) << step;
    if (diverged != 0) {
      EXPECT_FALSE(reports.at(1).draw_due);
    }
  }
  ASSERT_GT(diverged, 1) << "at the first step the host waits";
  EXPECT_THAT(said_late, ElementsAre(diverged));
}

}  // namespace
}  // namespace chainfleet
