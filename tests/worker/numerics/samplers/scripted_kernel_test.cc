// Runs the samplers that need only losses and gradients on a network of a user: a file of torch.export, and a
// TorchScript module. The samplers that must know the layers refuse both.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/chain_run.h"
#include "tests/support/exported_files.h"
#include "tests/support/model_files.h"
#include "tests/support/script_file.h"
#include "tests/support/synthetic_dataset.h"

namespace chainfleet {
namespace {

constexpr int64_t kExamples = 96;

// 24 steps in epochs of 6, chains of any sampler.
std::shared_ptr<JobPlan> PlanFor(const SamplerSpec& sampler, ModelFormat format, const ResidentDataset& data) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "scripted-aaaaaa";
  JobSpec& spec = plan->spec;
  spec.name = "scripted";
  spec.model.kind = StoredNetworkModel{"mine", format};
  spec.dataset = data.description().name;
  if (!std::holds_alternative<BsamSpec>(sampler.kind)) spec.prior.kind = GaussianPrior{5};
  spec.sampler = sampler;
  spec.schedule = {sampler.is_microcanonical() ? StepScale::kLearningRate : StepScale::kStepSize,
                   ConstantSchedule{2e-4}};
  spec.temperature = 0.5;
  spec.batch_size = 16;
  spec.num_steps = 24;
  spec.chains = 8;
  if (sampler.posterior_draws() == 0) spec.collect.every_steps = 3;
  if (!sampler.is_metropolis() && !sampler.passes_over_data() && !std::holds_alternative<MileSpec>(sampler.kind))
    spec.augmentation = {.crop_padding = 3, .flip = true};
  spec.seed = 11;
  plan->dataset = data.description();
  plan->normalisation = data.description().normalisation;
  return plan;
}

struct Case {
  ModelFormat format;
  SamplerSpec sampler;
  bool is_head = false;  // samples the last layer of conv.pt2 alone
};

class KernelOnAModule : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<ChainBatch> BatchOf(const std::vector<int32_t>& chains) {
    auto batch = ChainBatch::Create(plan_, data_, "cpu", module_);
    EXPECT_TRUE(batch.ok()) << batch.status();
    for (const int32_t chain : chains) EXPECT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
    return *std::move(batch);
  }
  Draws RunAlone(int32_t index) { return RunChain(*BatchOf({index}), index); }

  static std::string NetworkFile() {
    if (GetParam().format == ModelFormat::kTorchScript) return ScriptedMlp({784, 10});
    return ReadExportedData(GetParam().is_head ? "conv.pt2" : "softmax.pt2");
  }

  const std::shared_ptr<const ResidentDataset> data_ =
      GetParam().is_head ? SyntheticImages(kExamples, {1, 8, 8}) : SyntheticImages(kExamples);
  const std::shared_ptr<const ModelFile> module_ = FileOf(NetworkFile());
  const std::shared_ptr<JobPlan> plan_ = PlanFor(GetParam().sampler, GetParam().format, *data_);
};

TEST_P(KernelOnAModule, SameKeyGivesTheSameDrawsAnotherKeyOthers) {
  const Draws draws = RunAlone(2);
  ASSERT_FALSE(draws.empty());
  EXPECT_EQ(Flat(draws), Flat(RunAlone(2)));
  EXPECT_NE(Flat(draws), Flat(RunAlone(3)));
}

TEST_P(KernelOnAModule, BatchOfChainsEqualsSingleChains) {
  for (const int32_t index : {0, 4}) {
    EXPECT_EQ(Flat(RunChain(*BatchOf({4, 0, 1}), index)), Flat(RunAlone(index))) << index;
  }
}

TEST_P(KernelOnAModule, ResumeEqualsNoInterruption) {
  const Draws whole = RunAlone(1);
  for (const int cut : {1, 13}) {
    const auto before = BatchOf({1}), after = BatchOf({});
    Draws draws = RunChain(*before, 1, cut);
    ASSERT_TRUE(after->AddChain(1, before->SaveResumePoint(1)).ok());
    for (Draw& draw : RunChain(*after, 1)) draws.push_back(std::move(draw));
    EXPECT_EQ(Flat(draws), Flat(whole)) << "cut after " << cut;
  }
}

TEST_P(KernelOnAModule, DrawsMatchTheBuiltInUpToRounding) {
  const std::vector<float> drawn = Flat(RunAlone(2));
  plan_->spec.model.kind = BuiltinModel{"softmax_regression", {}};
  const std::vector<float> expected = Flat(RunAlone(2));
  ASSERT_EQ(drawn.size(), expected.size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < drawn.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(drawn[i]) - expected[i]));
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
  }
  EXPECT_LT(worst, 1e-4 * largest);
}

class KernelOnAHead : public KernelOnAModule {
 protected:
  KernelOnAHead() { plan_->spec.model.sample = {"5.*"}; }
};

// With and without augmentation, which changes the results of the trunk in each step.
TEST_P(KernelOnAHead, HasTheSameDrawsAloneInABatchAndAfterAResume) {
  const Draws whole = RunAlone(1);
  ASSERT_FALSE(whole.empty());
  EXPECT_EQ(whole.front().theta.at(0).size(), 64 * 10 + 10) << "only the sampled tensors";
  EXPECT_NE(Flat(whole), Flat(RunAlone(3)));
  EXPECT_EQ(Flat(RunChain(*BatchOf({4, 1, 0}), 1)), Flat(whole));
  const auto before = BatchOf({1}), after = BatchOf({});
  Draws draws = RunChain(*before, 1, 13);
  ASSERT_TRUE(after->AddChain(1, before->SaveResumePoint(1)).ok());
  for (Draw& draw : RunChain(*after, 1)) draws.push_back(std::move(draw));
  EXPECT_EQ(Flat(draws), Flat(whole));
}

const std::vector<SamplerSpec>& Samplers() {
  static const auto* const samplers =
      new std::vector<SamplerSpec>{SamplerSpec{SgldSpec{}},
                                   SamplerSpec{EmcmcSpec{0.01, true}},
                                   SamplerSpec{EmcmcGibbsSpec{0.01, 4}},
                                   SamplerSpec{SgdSpec{}},
                                   SamplerSpec{SghmcSpec{}},
                                   SamplerSpec{SghmcSpec{.scheme = SghmcScheme::kBaoa}},
                                   SamplerSpec{EntropySgdSpec{0.01, 4, 0.75}},
                                   SamplerSpec{EntropySgldSpec{0.01, 4, 0.75}},
                                   SamplerSpec{SamSpec{}},
                                   SamplerSpec{BsamSpec{.parts = 4}},
                                   SamplerSpec{SwaSpec{.start_epoch = 2}},
                                   SamplerSpec{SwagSpec{.start_epoch = 2, .max_rank = 3, .draws = 4}},
                                   SamplerSpec{RandomWalkSpec{}},
                                   SamplerSpec{MalaSpec{}},
                                   SamplerSpec{HmcSpec{3}},
                                   SamplerSpec{MileSpec{.optimizer_steps = 4, .warm_up_steps = 12}},
                                   SamplerSpec{SmileSpec{.optimizer_steps = 4, .warm_up_steps = 12}},
                                   SamplerSpec{PenaltyMhSpec{.proposal = Proposal::kLangevin, .num_batches = 5}},
                                   SamplerSpec{BatchedMhSpec{.num_batches = 2}},
                                   SamplerSpec{TemperedMhSpec{48}},
                                   SamplerSpec{BarkerMhSpec{.num_batches = 5}},
                                   SamplerSpec{GradientUncertaintySpec{1.0}},
                                   SamplerSpec{LaplaceSpec{.structure = CurvatureStructure::kDiagonal, .draws = 4}}};
  return *samplers;
}

std::vector<Case> CasesOf(ModelFormat format, bool is_head = false) {
  std::vector<Case> cases;
  for (const SamplerSpec& sampler : Samplers()) cases.push_back({format, sampler, is_head});
  return cases;
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  return info.param.sampler.name() + "_" + std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(Samplers, KernelOnAModule, ::testing::ValuesIn(CasesOf(ModelFormat::kTorchScript)), NameOf);
INSTANTIATE_TEST_SUITE_P(Samplers, KernelOnAHead, ::testing::ValuesIn(CasesOf(ModelFormat::kExported, true)), NameOf);
INSTANTIATE_TEST_SUITE_P(Exported, KernelOnAModule, ::testing::ValuesIn(CasesOf(ModelFormat::kExported)), NameOf);

TEST(KernelsThatKnowLayers, RefuseAModule) {
  const auto data = SyntheticImages(kExamples);
  const std::tuple<SamplerSpec, ModelFormat, const char*> refused[] = {
      {{McDropoutSpec{.rate = 0.2}}, ModelFormat::kTorchScript, "sampler.mc_dropout"},
      {{LaplaceSpec{}}, ModelFormat::kExported, "sampler.laplace.structure"}};
  for (const auto& [sampler, format, path] : refused) {
    const auto plan = PlanFor(sampler, format, *data);
    plan->spec.augmentation = {};
    const auto violations = Validate(plan->spec);
    ASSERT_EQ(violations.size(), 1u) << sampler.name();
    EXPECT_EQ(violations[0].path, path);
  }
}

}  // namespace
}  // namespace chainfleet
