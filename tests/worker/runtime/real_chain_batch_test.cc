// Tests the runner over real arithmetic: the result of a chain that diverges, and that a batch split for lack of memory
// gives the draws of a whole batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/store/draw_codec/segment_codec.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/tight_batch.h"
#include "tests/support/worker_fixture.h"

namespace chainfleet {
namespace {

using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::shared_ptr<JobPlan> GaussianPlan(const SamplerSpec& sampler, double step_size, int32_t chains) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "job-a";
  JobSpec& spec = plan->spec;
  spec.name = "job-a";
  spec.model.kind = PotentialKind(GaussianPotential{70, 2});
  spec.sampler = sampler;
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{step_size}};
  spec.num_steps = 60;
  spec.collect.every_steps = 4;
  spec.collect.segment_draws = 3;
  spec.chains = chains;
  spec.seed = 3;
  return plan;
}

// Returns the coordinator's results of a job with real batches.
struct Left {
  std::vector<FakeCoordinator::Chain> chains;
  std::vector<std::vector<Draw>> draws;  // [chains], committed
  std::vector<ReleasedChain> released;
  std::vector<size_t> refused;  // chains of each batch that found no memory
};

Left RunJob(const std::shared_ptr<JobPlan>& plan, size_t memory_for = 1000) {
  Left left;
  FakeClock clock;
  ManualExecutor executor{&clock};
  FakeCoordinator server{&executor};
  const ChainBatchFactory factory = [&](std::shared_ptr<const JobPlan> of,
                                        const JobInputs& inputs) -> absl::StatusOr<std::unique_ptr<ChainBatch>> {
    CHAINFLEET_ASSIGN_OR_RETURN(auto batch, ChainBatch::Create(std::move(of), inputs.dataset, "cpu"));
    return std::make_unique<TightBatch>(std::move(batch), memory_for, 6, &left.refused);
  };
  FakeWorker worker(&server, &executor, &clock, factory, {.slots = 16});
  server.AddChains(plan, plan->spec.chains);
  worker.session.Start();
  RunWorker(&worker, &executor, &clock, absl::Seconds(20));
  executor.DropAll();
  for (int32_t i = 0; i < plan->spec.chains; ++i) {
    const FakeCoordinator::Chain& chain = server.chains[{"job-a", i}];
    left.chains.push_back(chain);
    auto& draws = left.draws.emplace_back();
    for (const Segment& segment : chain.segments) {
      const auto content = DecodeSegment(server.blobs.at(segment.object.name));
      EXPECT_TRUE(content.ok()) << content.status();
      draws.insert(draws.end(), content->draws.begin(), content->draws.end());
    }
  }
  left.released = server.released;
  return left;
}

TEST(RealChainBatch, ADivergingChainEndsDivergedWithFiniteDrawsOnly) {
  // At once, and after steps whose draws are committed: 1 - alpha k = -3.
  for (const double step_size : {1e30, 2.0}) {
    const auto plan = GaussianPlan({SgldSpec{}}, step_size, 2);
    plan->spec.num_steps = 400;
    const Left left = RunJob(plan);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(left.chains[i].state, ChainState::kDiverged);
      EXPECT_THAT(left.chains[i].reason, HasSubstr("not finite"));
      if (step_size == 2) {
        EXPECT_GT(left.draws[i].size(), 5u);
      }
      for (const Draw& draw : left.draws[i]) {
        for (const auto& kind : draw.theta) {
          for (const float x : kind) ASSERT_TRUE(std::isfinite(x)) << "step " << draw.step;
        }
      }
    }
  }
}

class DividedBatch : public ::testing::TestWithParam<SamplerSpec> {};

TEST_P(DividedBatch, GivesTheVeryDrawsOfAWholeOne) {
  const auto plan = GaussianPlan(GetParam(), 0.1, 7);
  const Left whole = RunJob(plan), divided = RunJob(plan, 2);
  EXPECT_THAT(whole.refused, IsEmpty());
  EXPECT_THAT(divided.refused, SizeIs(Gt(1u)));
  EXPECT_THAT(divided.released, IsEmpty());
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(whole.chains[i].state, ChainState::kSucceeded);
    EXPECT_EQ(divided.chains[i].state, ChainState::kSucceeded);
    ASSERT_FALSE(whole.draws[i].empty());
    ASSERT_EQ(divided.draws[i].size(), whole.draws[i].size());
    for (size_t d = 0; d < whole.draws[i].size(); ++d) {
      EXPECT_EQ(divided.draws[i][d].step, whole.draws[i][d].step);
      EXPECT_EQ(divided.draws[i][d].weight, whole.draws[i][d].weight);
      EXPECT_EQ(divided.draws[i][d].theta, whole.draws[i][d].theta);
    }
    EXPECT_EQ(divided.chains[i].progress.last_digest, whole.chains[i].progress.last_digest);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, DividedBatch,
                         ::testing::Values(SamplerSpec{EmcmcSpec{0.5}}, SamplerSpec{SghmcSpec{}},
                                           SamplerSpec{RandomWalkSpec{}}),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace chainfleet
