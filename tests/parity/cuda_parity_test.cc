// Every sampler's chains on a GPU against the same chains on the CPU: same keys, same draws up to float rounding.
// Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "tests/support/predictor_parity.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/chain_batch.h"
#include "worker/numerics/checkpoint_codec.h"

namespace chainfleet {
namespace {

constexpr int kChains = 3, kSteps = 5;

// A GPU that a CPU stands in for computes thread by thread: its networks are narrow.
#ifdef CHAINFLEET_FAKE_CUDA
constexpr bool kNarrow = true;
#else
constexpr bool kNarrow = false;
#endif

ModelSpec ModelOf(const std::string& name) {
  BuiltinModel model{name, {}};
  if (kNarrow && name == "mlp") model.hidden = {8, 6};
  if (kNarrow && name == "lenet5") model.width = 0.25;
  return {model};
}

class OnBothDevices : public ::testing::TestWithParam<SamplerSpec> {
 protected:
  void SetUp() override {
    // Once, and before the first torch call: LibTorch looks for its CUDA back end only then.
    static const absl::Status status = InitializeDevice("cuda:0", 1);
    if (!status.ok()) GTEST_SKIP() << status;
  }

  static std::shared_ptr<JobPlan> Plan(const std::string& model, const ResidentDataset& data) {
    auto plan = std::make_shared<JobPlan>();
    plan->job = "devices-aaaaaa";
    plan->spec.name = "devices";
    plan->spec.model = ModelOf(model);
    plan->spec.dataset = data.description().name;
    plan->spec.sampler = GetParam();
    if (GetParam().posterior_draws() > 0) plan->spec.prior.kind = GaussianPrior{5};
    plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{1e-5}};
    plan->spec.temperature = 0.5;
    plan->spec.batch_size = 16;
    plan->spec.num_steps = kSteps;
    plan->spec.chains = kChains;
    if (!GetParam().is_metropolis() && !GetParam().passes_over_data()) {
      plan->spec.augmentation = {.crop_padding = 3, .flip = true};
    }
    plan->dataset = data.description();
    plan->normalisation = data.description().normalisation;
    return plan;
  }

  // How far its draws are from where the chains began: nearly all of a draw is that.
  static std::vector<float> LastDraw(const std::shared_ptr<JobPlan>& plan,
                                     const std::shared_ptr<const ResidentDataset>& data, const std::string& device) {
    const auto batch = ChainBatch::Create(plan, data, device);
    EXPECT_TRUE(batch.ok()) << batch.status();
    for (int chain = 0; chain < kChains; ++chain) EXPECT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
    std::vector<float> values;
    std::vector<std::vector<float>> starts;
    for (int chain = 0; chain < kChains; ++chain) {
      starts.push_back(DecodeCheckpoint((*batch)->SaveResumePoint(chain))->arenas[0]);
    }
    const int64_t steps = PlanSteps(plan->spec, data->description().num_rows).total_steps;
    for (int64_t step = 0; step < steps; ++step) {
      const auto stepped = (*batch)->Step();
      EXPECT_TRUE(stepped.ok()) << stepped.status();
    }
    for (int chain = 0; chain < kChains; ++chain) {
      const auto held = (*batch)->GiveUpHeld(chain);
      for (const auto& kind : (held ? *held : (*batch)->TakeDraw(chain)).kinds) {
        std::ranges::transform(kind, starts[chain], std::back_inserter(values), std::minus());
      }
    }
    return values;
  }
};

TEST_P(OnBothDevices, ChainsOfANetworkGoTheSameWay) {
  const auto data = SyntheticImages(96);
  for (const char* model : {"softmax_regression", "mlp", "lenet5"}) {
    const auto plan = Plan(model, *data);
    if (!Validate(plan->spec).empty()) continue;  // no second layer to drop the inputs of
    const std::vector<float> cpu = LastDraw(plan, data, "cpu"), gpu = LastDraw(plan, data, "cuda:0");
    ASSERT_EQ(cpu.size(), gpu.size());
    double error = 0, size = 0;
    for (size_t i = 0; i < cpu.size(); ++i) {
      error += std::pow(static_cast<double>(gpu[i]) - cpu[i], 2);
      size += std::pow(static_cast<double>(cpu[i]), 2);
    }
    EXPECT_LT(std::sqrt(error / size), 1e-3) << model;
  }
}

using Tf32 = OnBothDevices;

TEST_P(Tf32, RoundsTheJobThatAskedForItAndNoOther) {
  if (kNarrow) GTEST_SKIP() << "a CPU has no tf32";
  const auto data = SyntheticImages(96);
  const auto plan = Plan("mlp", *data), rounded = Plan("mlp", *data);
  rounded->spec.precision = Precision::kTf32;
  const std::vector<float> before = LastDraw(plan, data, "cuda:0");
  EXPECT_NE(LastDraw(rounded, data, "cuda:0"), before);
  EXPECT_EQ(LastDraw(plan, data, "cuda:0"), before);
}

using Predictions = OnBothDevices;

TEST_P(Predictions, OfStackedDrawsAreThoseOfTheCpu) {
  const auto data = SyntheticImages(600);
  for (const char* model : {"softmax_regression", "mlp", "lenet5"}) {
    ExpectPredictorParity(ModelOf(model), *data, 550, 70, nullptr, Device{0});
  }
}

INSTANTIATE_TEST_SUITE_P(Samplers, Predictions, ::testing::Values(SamplerSpec{SgldSpec{}}));

INSTANTIATE_TEST_SUITE_P(Samplers, Tf32, ::testing::Values(SamplerSpec{SgldSpec{}}));

INSTANTIATE_TEST_SUITE_P(Samplers, OnBothDevices,
                         ::testing::Values(SamplerSpec{SgldSpec{}}, SamplerSpec{EmcmcSpec{1e-4}},
                                           SamplerSpec{EmcmcGibbsSpec{1e-4, 2}}, SamplerSpec{SgdSpec{}},
                                           SamplerSpec{SghmcSpec{}},
                                           SamplerSpec{SghmcSpec{.scheme = SghmcScheme::kBaoa}},
                                           SamplerSpec{EntropySgdSpec{1e-4, 2, 0.75}}, SamplerSpec{SamSpec{}},
                                           SamplerSpec{BsamSpec{.parts = 4}}, SamplerSpec{RandomWalkSpec{}},
                                           SamplerSpec{MalaSpec{}}, SamplerSpec{McDropoutSpec{.draws = 1}},
                                           SamplerSpec{LaplaceSpec{.draws = 1}},
                                           SamplerSpec{LaplaceSpec{CurvatureStructure::kDiagonal, 0.9, 1}}),
                         [](const auto& info) { return info.param.name() + "_" + std::to_string(info.index); });

}  // namespace
}  // namespace chainfleet
