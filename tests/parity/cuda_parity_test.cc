// Compares every sampler's chains on a GPU with the same chains on the CPU: same keys, same draws up to float rounding.
// Skipped without a GPU.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/device_chains.h"
#include "tests/support/predictor_parity.h"
#include "tests/support/synthetic_dataset.h"

namespace chainfleet {
namespace {

// A simulated GPU computes thread by thread, so its networks are narrow.
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

std::shared_ptr<JobPlan> PlanOf(const ModelSpec& model, const SamplerSpec& sampler, const ResidentDataset& data) {
  auto plan = NetworkPlan(model, sampler, data);
  if (sampler.posterior_draws() > 0) plan->spec.prior.kind = GaussianPrior{5};
  plan->spec.temperature = 0.5;
  if (!sampler.is_metropolis() && !sampler.passes_over_data() && sampler.own_burn_in() == 0) {
    plan->spec.augmentation = {.crop_padding = 3, .flip = true};
  }
  return plan;
}

Shown Show(const std::shared_ptr<const JobPlan>& plan, const Data& data, const Way& way) {
  return ChainsOnTheWay(plan, data, way).Run();
}

class OnBothDevices : public NeedsGpu, public ::testing::WithParamInterface<SamplerSpec> {};

TEST_P(OnBothDevices, ChainsOfANetworkMatchTheCpu) {
  const auto data = SyntheticImages(96);
  for (const char* model : {"softmax_regression", "mlp", "lenet5"}) {
    SCOPED_TRACE(model);
    const auto plan = PlanOf(ModelOf(model), GetParam(), *data);
    if (!Validate(plan->spec).empty()) continue;  // no second layer to drop the inputs of
    ExpectSameWay(Show(plan, data, {"cpu"}), Show(plan, data, {"cuda:0"}));
  }
}

TEST_P(OnBothDevices, ChainsContinueOnTheOtherDevice) {
  const auto data = SyntheticImages(96);
  const auto plan = PlanOf(ModelOf("mlp"), GetParam(), *data);
  const Shown cpu = Show(plan, data, {"cpu"});
  ExpectSameWay(cpu, Show(plan, data, {"cpu", "cuda:0"}));
  ExpectSameWay(cpu, Show(plan, data, {"cuda:0", "cpu"}));
}

TEST_P(OnBothDevices, ChainsThatLeaveDoNotTouchTheOthers) {
  const SecondGpu gpu;
  const auto data = SyntheticImages(96);
  const auto plan = PlanOf(ModelOf("mlp"), GetParam(), *data);
  ExpectSameWay(Show(plan, data, {"cpu", "", 2}), Show(plan, data, {gpu.name(), "", 2}));
}

// Launches take 64 rows of an update, and 32 of a pass.
TEST_F(NeedsGpu, MoreChainsThanALaunchTakesMatchTheCpu) {
  const auto data = SyntheticImages(16, {1, 8, 8});
  for (const SamplerSpec& sampler : {SamplerSpec{EmcmcSpec{1e-4}}, SamplerSpec{SghmcSpec{}}}) {
    SCOPED_TRACE(sampler.name());
    const auto plan = PlanOf(ModelOf("softmax_regression"), sampler, *data);
    plan->spec.chains = 70;
    ExpectSameWay(Show(plan, data, {"cpu"}), Show(plan, data, {"cuda:0"}));
  }
}

class Networks : public NeedsGpu, public ::testing::WithParamInterface<BuiltinModel> {};

TEST_P(Networks, MatchTheCpuForEveryLayer) {
  const auto data = SyntheticImages(16, {3, 32, 32});
  const auto plan = PlanOf({GetParam()}, {EmcmcSpec{1e-4}}, *data);
  plan->spec.batch_size = 4;
  plan->spec.chains = 2;
  // Its curvature differs by 29 % on a processor with AVX2 alone.
  const double curvature_tolerance = GetParam().name == "resnet20-frn" ? 0.4 : 0.2;
  ExpectSameWay(Show(plan, data, {"cpu"}), Show(plan, data, {"cuda:0"}), curvature_tolerance);
}

INSTANTIATE_TEST_SUITE_P(Builtin, Networks,
                         ::testing::Values(BuiltinModel{"cnn5", {}, 0.125}, BuiltinModel{"resnet18", {}, 0.0625},
                                           BuiltinModel{"resnet20-frn", {}, 0.25}, BuiltinModel{"vgg16", {}, 0.0625}),
                         [](const auto& info) { return info.param.name.substr(0, info.param.name.find('-')); });

using Tf32 = OnBothDevices;

TEST_P(Tf32, RoundsTheJobThatAskedForItAndNoOther) {
  if (kNarrow) GTEST_SKIP() << "a CPU has no tf32";
  const auto data = SyntheticImages(96);
  const auto plan = PlanOf(ModelOf("mlp"), GetParam(), *data), rounded = PlanOf(ModelOf("mlp"), GetParam(), *data);
  rounded->spec.precision = Precision::kTf32;
  const std::vector<float> before = Show(plan, data, {"cuda:0"}).moved;
  EXPECT_NE(Show(rounded, data, {"cuda:0"}).moved, before);
  EXPECT_EQ(Show(plan, data, {"cuda:0"}).moved, before);
}

using Predictions = OnBothDevices;

TEST_P(Predictions, MatchTheCpuForStackedDraws) {
  const auto data = SyntheticImages(600);
  for (const char* model : {"softmax_regression", "mlp", "lenet5"}) {
    ExpectPredictorParity(ModelOf(model), *data, 550, 70, nullptr, Device{0});
  }
}

INSTANTIATE_TEST_SUITE_P(Samplers, Predictions, ::testing::Values(SamplerSpec{SgldSpec{}}));

INSTANTIATE_TEST_SUITE_P(Samplers, Tf32, ::testing::Values(SamplerSpec{SgldSpec{}}));

INSTANTIATE_TEST_SUITE_P(
    Samplers, OnBothDevices,
    ::testing::Values(SamplerSpec{SgldSpec{}}, SamplerSpec{EmcmcSpec{1e-4}}, SamplerSpec{EmcmcGibbsSpec{1e-4, 2}},
                      SamplerSpec{SgdSpec{}}, SamplerSpec{SghmcSpec{}},
                      SamplerSpec{SghmcSpec{.scheme = SghmcScheme::kBaoa}}, SamplerSpec{EntropySgdSpec{1e-4, 2, 0.75}},
                      SamplerSpec{SamSpec{}}, SamplerSpec{BsamSpec{.parts = 4}}, SamplerSpec{RandomWalkSpec{}},
                      SamplerSpec{MalaSpec{}}, SamplerSpec{EntropySgldSpec{1e-4, 2, 0.75}},
                      SamplerSpec{GradientUncertaintySpec{.threshold = 1}}, SamplerSpec{HmcSpec{.leapfrog_steps = 3}},
                      SamplerSpec{PenaltyMhSpec{.num_batches = 4}},
                      SamplerSpec{PenaltyMhSpec{.proposal = Proposal::kLangevin, .num_batches = 4}},
                      SamplerSpec{BatchedMhSpec{.num_batches = 4}}, SamplerSpec{BarkerMhSpec{.num_batches = 4}},
                      SamplerSpec{TemperedMhSpec{.data_size = 10}}, SamplerSpec{SwaSpec{.start_epoch = 0}},
                      SamplerSpec{SwagSpec{.start_epoch = 0, .max_rank = 2, .draws = 2}},
                      SamplerSpec{McDropoutSpec{.draws = 1}}, SamplerSpec{LaplaceSpec{.draws = 1}},
                      SamplerSpec{LaplaceSpec{CurvatureStructure::kDiagonal, 0.9, 1}}, SamplerSpec{SgdSpec{.optimizer = Optimizer::kAdamw}},
                      SamplerSpec{MileSpec{.optimizer_steps = 2, .warm_up_steps = 2}},
                      SamplerSpec{SmileSpec{.optimizer_steps = 0, .warm_up_steps = 4}}),
    [](const auto& info) { return info.param.name() + "_" + std::to_string(info.index); });

}  // namespace
}  // namespace chainfleet
