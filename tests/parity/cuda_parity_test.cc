// Every sampler's chains on a GPU against the same chains on the CPU: same keys, same draws up to float rounding.
// Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/network_chains.h"
#include "tests/support/predictor_parity.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/checkpoint_codec.h"

namespace chainfleet {
namespace {

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

using Data = std::shared_ptr<const ResidentDataset>;

std::shared_ptr<JobPlan> PlanOf(const ModelSpec& model, const SamplerSpec& sampler, const ResidentDataset& data) {
  auto plan = NetworkPlan(model, sampler, data);
  if (sampler.posterior_draws() > 0) plan->spec.prior.kind = GaussianPrior{5};
  plan->spec.temperature = 0.5;
  if (!sampler.is_metropolis() && !sampler.passes_over_data()) {
    plan->spec.augmentation = {.crop_padding = 3, .flip = true};
  }
  return plan;
}

struct Way {
  std::string device, then;  // after two steps all chains go on there, from their resume points; empty: they stay
  int removed = 0;           // so many chains leave after two steps, from the first
};

void GoOn(const Way& way, const std::shared_ptr<JobPlan>& plan, const Data& data, std::unique_ptr<ChainBatch>* batch) {
  for (int chain = 0; chain < way.removed; ++chain) (*batch)->RemoveChain(chain);
  if (way.then.empty()) return;
  auto other = BatchOf(plan, data, way.then, 0);
  for (int chain = way.removed; chain < plan->spec.chains; ++chain) {
    EXPECT_TRUE(other->AddChain(chain, (*batch)->SaveResumePoint(chain)).ok());
  }
  *batch = std::move(other);
}

// How far the draws are from where their chains began: nearly all of a draw is that.
std::vector<float> LastDraws(const std::shared_ptr<JobPlan>& plan, const Data& data, const Way& way) {
  auto batch = BatchOf(plan, data, way.device, plan->spec.chains);
  std::vector<float> values;
  std::vector<std::vector<float>> starts;
  for (int chain = 0; chain < plan->spec.chains; ++chain) {
    starts.push_back(DecodeCheckpoint(batch->SaveResumePoint(chain))->arenas[0]);
  }
  const int64_t steps = PlanSteps(plan->spec, data->description().num_rows).total_steps;
  for (int64_t step = 0; step < steps; ++step) {
    if (step == 2) GoOn(way, plan, data, &batch);
    const auto stepped = batch->Step();
    EXPECT_TRUE(stepped.ok()) << stepped.status();
  }
  for (int chain = way.removed; chain < plan->spec.chains; ++chain) {
    const auto held = batch->GiveUpHeld(chain);
    for (const auto& kind : (held ? *held : batch->TakeDraw(chain)).kinds) {
      std::ranges::transform(kind, starts[chain], std::back_inserter(values), std::minus());
    }
  }
  return values;
}

void ExpectSameWay(const std::vector<float>& cpu, const std::vector<float>& gpu) {
  EXPECT_LT(RelativeDistance(gpu, cpu), 1e-3);
}

class NeedsGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    // Once, and before the first torch call: LibTorch looks for its CUDA back end only then.
    static const absl::Status status = InitializeDevice("cuda:0", 1);
    if (!status.ok()) GTEST_SKIP() << status;
  }
};

class OnBothDevices : public NeedsGpu, public ::testing::WithParamInterface<SamplerSpec> {};

TEST_P(OnBothDevices, ChainsOfANetworkGoTheSameWay) {
  const auto data = SyntheticImages(96);
  for (const char* model : {"softmax_regression", "mlp", "lenet5"}) {
    SCOPED_TRACE(model);
    const auto plan = PlanOf(ModelOf(model), GetParam(), *data);
    if (!Validate(plan->spec).empty()) continue;  // no second layer to drop the inputs of
    ExpectSameWay(LastDraws(plan, data, {"cpu"}), LastDraws(plan, data, {"cuda:0"}));
  }
}

TEST_P(OnBothDevices, ChainsGoOnOnTheOtherDevice) {
  const auto data = SyntheticImages(96);
  const auto plan = PlanOf(ModelOf("mlp"), GetParam(), *data);
  const std::vector<float> cpu = LastDraws(plan, data, {"cpu"});
  ExpectSameWay(cpu, LastDraws(plan, data, {"cpu", "cuda:0"}));
  ExpectSameWay(cpu, LastDraws(plan, data, {"cuda:0", "cpu"}));
}

TEST_P(OnBothDevices, ChainsThatLeaveDoNotTouchTheOthers) {
  const auto data = SyntheticImages(96);
  const auto plan = PlanOf(ModelOf("mlp"), GetParam(), *data);
  ExpectSameWay(LastDraws(plan, data, {"cpu", "", 2}), LastDraws(plan, data, {"cuda:0", "", 2}));
}

// Launches take 64 rows of an update, and 32 of a pass.
TEST_F(NeedsGpu, MoreChainsThanALaunchTakesGoTheSameWay) {
  const auto data = SyntheticImages(16, {1, 8, 8});
  for (const SamplerSpec& sampler : {SamplerSpec{EmcmcSpec{1e-4}}, SamplerSpec{SghmcSpec{}}}) {
    SCOPED_TRACE(sampler.name());
    const auto plan = PlanOf(ModelOf("softmax_regression"), sampler, *data);
    plan->spec.chains = 70;
    ExpectSameWay(LastDraws(plan, data, {"cpu"}), LastDraws(plan, data, {"cuda:0"}));
  }
}

class Networks : public NeedsGpu, public ::testing::WithParamInterface<BuiltinModel> {};

TEST_P(Networks, OfEveryLayerGoTheSameWay) {
  const auto data = SyntheticImages(16, {3, 32, 32});
  const auto plan = PlanOf({GetParam()}, {EmcmcSpec{1e-4}}, *data);
  plan->spec.batch_size = 4;
  plan->spec.chains = 2;
  ExpectSameWay(LastDraws(plan, data, {"cpu"}), LastDraws(plan, data, {"cuda:0"}));
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
  const std::vector<float> before = LastDraws(plan, data, {"cuda:0"});
  EXPECT_NE(LastDraws(rounded, data, {"cuda:0"}), before);
  EXPECT_EQ(LastDraws(plan, data, {"cuda:0"}), before);
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
                      SamplerSpec{TemperedMhSpec{.data_size = 10}}, SamplerSpec{SwaSpec{.start_epoch = 0}},
                      SamplerSpec{SwagSpec{.start_epoch = 0, .max_rank = 2, .draws = 2}},
                      SamplerSpec{McDropoutSpec{.draws = 1}}, SamplerSpec{LaplaceSpec{.draws = 1}},
                      SamplerSpec{LaplaceSpec{CurvatureStructure::kDiagonal, 0.9, 1}}),
    [](const auto& info) { return info.param.name() + "_" + std::to_string(info.index); });

}  // namespace
}  // namespace chainfleet
