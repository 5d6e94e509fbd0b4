// Runs every sampler's chains on a fake GPU that runs out of memory, or breaks, at each allocation in turn.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_cuda/fake_gpu_calls.h"
#include "tests/support/network_chains.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/batch/checkpoint_codec.h"
#include "worker/numerics/tensors/torch_errors.h"

namespace chainfleet {
namespace {

using fake_cuda::Fail;
using fake_cuda::Fault;

constexpr int kChains = 3;
constexpr int64_t kMostAllocations = 5000;  // more than any call here makes

class DeviceFaults : public ::testing::TestWithParam<SamplerSpec> {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(InitializeDevice("cuda:0", 1).ok()); }
  void TearDown() override { Fail(0); }

  std::shared_ptr<JobPlan> Plan() const {
    auto plan = NetworkPlan({BuiltinModel{"mlp", {3}}}, GetParam(), *data_);
    if (GetParam().name() != "bsam") plan->spec.prior.kind = GaussianPrior{5};
    plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{1e-4}};
    if (GetParam().is_microcanonical()) plan->spec.schedule.scale = StepScale::kLearningRate;
    plan->spec.batch_size = 8;
    plan->spec.num_steps = 3 + GetParam().own_burn_in();
    plan->spec.chains = kChains;
    return plan;
  }
  std::unique_ptr<ChainBatch> Batch(int chains) const { return BatchOf(Plan(), data_, "cuda:0", chains); }
  // Compares all but the measurements of the chains, which are skipped when memory is short.
  static std::vector<std::string> StateOf(const ChainBatch& batch) {
    std::vector<std::string> state;
    for (const int32_t chain : batch.chains()) {
      Checkpoint checkpoint = DecodeCheckpoint(batch.SaveResumePoint(chain)).value();
      checkpoint.report.reset();
      state.push_back(EncodeCheckpoint(checkpoint));
    }
    return state;
  }
  // Lets each allocation of `call` fail in turn until it makes no more. Calls `failed` after some of these.
  static void TryUntilItWorks(
      const std::function<absl::Status()>& call, const std::function<void()>& failed = [] {}) {
    for (int64_t at = 1; at <= kMostAllocations; ++at) {
      Fail(at);
      const absl::Status status = call();
      Fail(0);
      if (status.ok()) return;
      ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
      if (at % 16 == 0) failed();
    }
    FAIL() << "it never works";
  }

  // Laplace takes one batch: each of its passes makes thousands of allocations.
  const std::shared_ptr<const ResidentDataset> data_ = SyntheticImages(GetParam().passes_over_data() ? 8 : 24);
};

// The chains continue in the batch that was short of memory, or in another batch from their resume points, as after a
// split.
TEST_P(DeviceFaults, AllChainsMatchTheCpuAfterATemporaryLackOfMemory) {
  const auto undisturbed = Batch(kChains);
  auto batch = Batch(1);
  for (int chain = 1; chain < kChains; ++chain) {
    TryUntilItWorks([&] { return batch->AddChain(chain, std::nullopt); });
  }
  const auto move_to_another = [&] {
    auto other = Batch(0);
    for (const int32_t chain : batch->chains()) {
      ASSERT_TRUE(other->AddChain(chain, batch->SaveResumePoint(chain)).ok());
    }
    batch = std::move(other);
  };
  const int64_t steps = PlanSteps(Plan()->spec, data_->description().num_rows).total_steps;
  for (int64_t step = 0; step < steps; ++step) {
    TryUntilItWorks([&] { return batch->Step().status(); }, move_to_another);
    ASSERT_TRUE(undisturbed->Step().ok());
    ASSERT_TRUE(StateOf(*batch) == StateOf(*undisturbed)) << "step " << step;
  }
  // The runner drops a batch that throws; its completed work must still be readable.
  const auto take = [&] {
    return CatchTorch("a draw", [&] {
      if (!GetParam().is_metropolis()) batch->TakeDraw(1);
      return absl::OkStatus();
    });
  };
  TryUntilItWorks(take);
}

TEST_P(DeviceFaults, ABrokenDeviceIsReportedAsLost) {
  const auto batch = Batch(kChains);
  ASSERT_TRUE(batch->Step().ok());
  Fail(2, Fault::kLost);
  for (int again = 0; again < 2; ++again) {
    const absl::Status status = batch->Step().status();
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_EQ(ReasonOf(status), kDeviceLost);
  }
  EXPECT_EQ(ReasonOf(ChainBatch::Create(Plan(), data_, "cuda:0").status()), kDeviceLost);
}

INSTANTIATE_TEST_SUITE_P(Samplers, DeviceFaults,
                         ::testing::Values(SamplerSpec{SgldSpec{}}, SamplerSpec{EmcmcSpec{1e-4}},
                                           SamplerSpec{EmcmcGibbsSpec{1e-4, 2}}, SamplerSpec{SgdSpec{}},
                                           SamplerSpec{SghmcSpec{}},
                                           SamplerSpec{SghmcSpec{.scheme = SghmcScheme::kBaoa}},
                                           SamplerSpec{EntropySgdSpec{1e-4, 2, 0.75}}, SamplerSpec{SamSpec{}},
                                           SamplerSpec{BsamSpec{.parts = 4}}, SamplerSpec{RandomWalkSpec{}},
                                           SamplerSpec{MalaSpec{}}, SamplerSpec{HmcSpec{.leapfrog_steps = 2}},
                                           SamplerSpec{SwagSpec{.draws = 1}},
                                           SamplerSpec{LaplaceSpec{CurvatureStructure::kDiagonal, 0.9, 1}},
                                           SamplerSpec{MileSpec{.optimizer_steps = 2, .warm_up_steps = 2}},
                                           SamplerSpec{SmileSpec{.optimizer_steps = 1, .warm_up_steps = 4}}),
                         [](const auto& info) { return info.param.name() + "_" + std::to_string(info.index); });

}  // namespace
}  // namespace chainfleet
