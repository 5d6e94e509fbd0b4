// Compares TorchScript modules with the built-in network of the same layers, and tests modules that are no networks.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "core/formats/torch_script.h"
#include "tests/support/model_files.h"
#include "tests/support/network_chains.h"
#include "tests/support/network_fixture.h"
#include "tests/support/one_stack.h"
#include "tests/support/regression_dataset.h"
#include "tests/support/script_file.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/models/scripted_network.h"
#include "worker/numerics/predict/predictor.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;

const std::vector<int64_t> kMlp = {784, 200, 200, 10};
constexpr int64_t kExamples = 300;

JobPlan PlanOf(const ModelSpec& model, const ResidentDataset& data) {
  JobPlan plan = *NetworkPlan(model, {SgldSpec{}}, data);
  plan.spec.prior.kind = GaussianPrior{25};
  return plan;
}

struct Outcome {
  std::vector<double> energy, losses;
  std::vector<std::vector<float>> gradient;
  bool operator==(const Outcome&) const = default;
};

Outcome Evaluate(Potential& potential, int64_t first, int64_t chains) {
  constexpr int64_t kBatch = 40;
  const ThetaArena theta = RandomTheta(potential.layout(), chains, 5 + first);
  ThetaArena gradient = theta.Clone();
  const std::vector<int64_t> ids = SomeIds(4, kBatch, kExamples);
  const BatchRows batch = {ids.data() + first * kBatch, kBatch};
  Outcome outcome{std::vector<double>(chains), std::vector<double>(chains * kBatch), {}};
  potential.Evaluate(theta, batch, &gradient, outcome.energy.data());
  potential.Losses(theta, batch, outcome.losses.data());
  for (int64_t c = 0; c < chains; ++c) outcome.gradient.push_back(gradient.ReadRow(c));
  return outcome;
}

class ScriptedMlpParity : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(2); }
  std::unique_ptr<Potential> Module() const {
    auto potential = MakeNetworkPotential(PlanOf({StoredNetworkModel{"mine", ModelFormat::kTorchScript}}, *data_),
                                          data_, Device(), file_.get());
    EXPECT_TRUE(potential.ok()) << potential.status();
    return *std::move(potential);
  }

  const std::shared_ptr<const ResidentDataset> data_ = SyntheticImages(kExamples);
  const std::shared_ptr<const ModelFile> file_ = FileOf(ScriptedMlp(kMlp));
};

TEST_F(ScriptedMlpParity, LossesAndGradientsMatchTheBuiltIn) {
  const auto module = Module(), builtin = MakeNetwork("mlp", data_);
  ASSERT_EQ(module->layout()->parameters().size(), builtin->layout()->parameters().size());
  for (size_t k = 0; k < module->layout()->parameters().size(); ++k) {
    const ParameterShape &here = module->layout()->parameters()[k], &there = builtin->layout()->parameters()[k];
    EXPECT_EQ(here.name, there.name);
    EXPECT_EQ(here.shape, there.shape);
    EXPECT_EQ(here.offset, there.offset);
    EXPECT_EQ(here.fan_in, there.fan_in);
  }
  const Outcome here = Evaluate(*module, 0, 3), there = Evaluate(*builtin, 0, 3);
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(here.energy[c], there.energy[c], 1e-5 * there.energy[c]);
    EXPECT_LT(RelativeDistance(here.gradient[c], there.gradient[c]), 1e-5);
  }
  for (size_t i = 0; i < here.losses.size(); ++i) EXPECT_NEAR(here.losses[i], there.losses[i], 1e-5);
}

TEST_F(ScriptedMlpParity, ChainsHaveTheSameBitsAloneInABatchAndAgain) {
  const auto module = Module();
  const Outcome all = Evaluate(*module, 0, 4);
  for (int run = 0; run < 3; ++run) EXPECT_TRUE(Evaluate(*module, 0, 4) == all) << run;
  for (int64_t c = 0; c < 4; ++c) EXPECT_EQ(Evaluate(*module, c, 1).gradient[0], all.gradient[c]) << c;
}

TEST_F(ScriptedMlpParity, AChainMatchesTheBuiltInAndItsPredictions) {
  const auto run = [&](const ModelSpec& model) {
    const auto plan = std::make_shared<JobPlan>(PlanOf(model, *data_));
    const auto batch = ChainBatch::Create(plan, data_, "cpu", file_);
    EXPECT_TRUE(batch.ok()) << batch.status();
    EXPECT_TRUE((*batch)->AddChain(2, std::nullopt).ok());
    for (int step = 0; step < 5; ++step) EXPECT_TRUE((*batch)->Step().ok());
    return (*batch)->TakeDraw(2).theta[0];
  };
  const auto predict = [&](const ModelSpec& model, const std::vector<float>& draw) {
    const auto plan = std::make_shared<PredictPlan>(
        PredictPlan{"parity-aaaaaa", model, {1, 28, 28}, Classes{10}, data_->description().normalisation, {}});
    const auto predictor = Predictor::Create(plan, "cpu", file_);
    EXPECT_TRUE(predictor.ok()) << predictor.status();
    const DrawStack stack = {{"parity-aaaaaa", 2}, DrawKind::kTheta, {1}, {std::make_shared<std::vector<float>>(draw)}};
    return PredictRows(*predictor, stack, *data_, 0, 100, true, false)->classes().sum_wp;
  };
  const ModelSpec module{StoredNetworkModel{"mine", ModelFormat::kTorchScript}}, builtin{BuiltinModel{"mlp", {}}};
  const std::vector<float> here = run(module), there = run(builtin);
  EXPECT_LT(RelativeDistance(here, there), 1e-5);
  const std::vector<double> p = predict(module, there), q = predict(builtin, there);
  ASSERT_EQ(p.size(), q.size());
  for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p[i], q[i], 1e-5);
}

TEST(ScriptedNetwork, AnswersToAnyLikelihoodWhoseOwnParametersComeLast) {
  const auto data = Resident(MakeTable(kExamples, 4, false));
  const std::string file = ScriptedMlp({4, 8, 1});
  const auto make = [&](const ModelSpec& model) {
    return *MakeNetworkPotential(PlanOf(model, *data), data, Device(), FileOf(file).get());
  };
  const GaussianLikelihood learned{.variance = {}, .learned = true};
  const auto module = make({StoredNetworkModel{"mine", ModelFormat::kTorchScript}, learned}),
             builtin = make({BuiltinModel{"mlp", {8}}, learned});
  EXPECT_EQ(module->layout()->parameters().back().name, "likelihood.log_variance");
  const Outcome here = Evaluate(*module, 0, 3), there = Evaluate(*builtin, 0, 3);
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(here.energy[c], there.energy[c], 1e-5 * std::abs(there.energy[c]));
    EXPECT_LT(RelativeDistance(here.gradient[c], there.gradient[c]), 1e-5);
  }
}

// Returns the error of Load for a module with inputs [4] and 3 classes.
std::string RefusalOf(const std::string& file) {
  const auto network = ScriptedNetwork::Load(file, {4}, 3, at::kCPU);
  if (network.ok()) return "";
  EXPECT_EQ(network.status().code(), absl::StatusCode::kInvalidArgument) << network.status();
  const auto violations = FieldViolationsOf(network.status());
  if (violations.size() != 1) return "no violation";
  EXPECT_EQ(violations[0].path, "model.torchscript");
  return violations[0].message;
}

TEST(ScriptedNetwork, TakesAModuleWhoseForwardGivesLogits) { EXPECT_EQ(RefusalOf(ScriptedMlp({4, 5, 3})), ""); }

// Names are keys of checkpoints and draws.
TEST(StoredNetwork, RefusesNamesThatMeanTwoParametersOrNoText) {
  StoredNetworkUse use{"model.torchscript", {4}, 3, at::kCPU, {}};
  use.more = {{.name = "likelihood.log_variance", .shape = {3}}};
  const at::Tensor two = at::ones({2});
  EXPECT_TRUE(ShapeOfStored({"w", "v"}, {two, two}, use).ok());
  for (const std::vector<std::string>& names :
       std::vector<std::vector<std::string>>{{"w", "w"}, {"w", "likelihood.log_variance"}, {"w", "\xc8"}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ShapeOfStored(names, {two, two}, use).status())) << names.back();
  }
}

TEST(ScriptedNetwork, RefusesFilesThatDoNotLoad) {
  const std::string whole = ScriptedMlp({4, 5, 3});
  EXPECT_THAT(RefusalOf(whole.substr(0, whole.size() / 2)), HasSubstr("does not load"));
  EXPECT_THAT(RefusalOf("import os"), HasSubstr("does not load"));
  EXPECT_THAT(RefusalOf(""), HasSubstr("does not load"));
}

TEST(ScriptedNetwork, RefusesOutputsThatAreNoLogits) {
  EXPECT_THAT(RefusalOf(ScriptedMlp({4, 5, 2})), HasSubstr("gives Float [3, 2]"));
  EXPECT_THAT(RefusalOf(ScriptedMlp({4, 3}, "return self.logits(x).sum()")), HasSubstr("gives Float []"));
  EXPECT_THAT(RefusalOf(ScriptedMlp({4, 3}, "return self.logits(x).double()")), HasSubstr("gives Double"));
  EXPECT_THAT(RefusalOf(ScriptedMlp({4, 3}, "return (self.logits(x), x)")), HasSubstr("fails"));
  EXPECT_THAT(RefusalOf(ScriptedMlp({7, 3})), HasSubstr("forward of inputs [3, 4] fails"));
}

TEST(ScriptedNetwork, RefusesWhatIsNoFunctionOfThetaAndOneInput) {
  const std::string loud = "return self.logits(x) + torch.rand([3])";
  EXPECT_THAT(RefusalOf(ScriptedMlp({4, 3}, loud)), HasSubstr("another answer"));
  EXPECT_THAT(RefusalOf(ScriptedMlp({4, 3}, "return self.logits(x) + x.mean()")), HasSubstr("mixes examples"));
  EXPECT_THAT(RefusalOf(ScriptedMlp({4, 3}, "self.seen.add_(1.0)\n  return self.logits(x)")),
              HasSubstr("changes a buffer"));
  EXPECT_EQ(RefusalOf(ScriptedMlp({4, 3}, "return self.logits(x) + self.seen")), "") << "a constant";
}

// Tests the server's check with files that LibTorch itself writes.
TEST(ScriptedNetwork, IsRefusedByTheServerWhenItOpensFiles) {
  EXPECT_TRUE(CheckTorchScript(ScriptedMlp({4, 5, 3})).ok());
  for (const char* call : {"torch.save(x, \"f\")", "x = torch.from_file(\"f\")"}) {
    const absl::Status checked = CheckTorchScript(ScriptedMlp({4, 3}, std::string(call) + "\n  return self.logits(x)"));
    EXPECT_THAT(std::string(checked.message()), HasSubstr("opens files")) << call;
  }
}

// Refused before any of the module's code runs.
TEST(ScriptedNetwork, RefusesOperatorsThatDoMoreThanArithmetic) {
  const std::string path = ::testing::TempDir() + "written-by-a-module-" + std::to_string(::getpid());
  const auto refusal = [](const std::string& line) {
    return RefusalOf(ScriptedMlp({4, 3}, "y = x\n  " + line + "\n  return self.logits(x) + y.sum()"));
  };
  EXPECT_THAT(refusal("torch.save(x, \"" + path + "\")"), HasSubstr("uses aten::save"));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THAT(refusal("y = torch.from_file(\"" + path + "\", True, 4)"), HasSubstr("uses aten::from_file"));
  EXPECT_THAT(refusal("print(x)"), HasSubstr("uses prim::Print"));
  EXPECT_THAT(refusal("y = torch.empty([1000])"), HasSubstr("uses aten::empty"));
  EXPECT_THAT(refusal("if x.size(0) > 100:\n    for i in range(3):\n      print(i)"), HasSubstr("uses prim::Print"));
}

TEST(ScriptedNetwork, TakesWhatNetworksAreMadeOf) {
  for (const char* line :
       {"y = torch.conv2d(x.reshape(1, 1, -1, 4), torch.ones([2, 1, 1, 1]))", "y = torch.softmax(x, 1).sum()",
        "y = torch.einsum(\"ij,kj->ik\", [x, x])", "y = torch.gelu(torch.dropout(x, 0.5, False))",
        "y = torch.cat([x, x[:, 1:]], 1)\n  if y.dim() != 2:\n    y = x.flatten(1)",
        "y = torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)",
        "y = torch.div(x, 2.0, rounding_mode=\"floor\")"}) {
    EXPECT_EQ(RefusalOf(ScriptedMlp({4, 3}, std::string(line) + "\n  return self.logits(x) + 0.0 * y.sum()")), "")
        << line;
  }
}

TEST(ScriptedNetwork, CountsTiedWeightsOnce) {
  const auto network =
      ScriptedNetwork::Load(ScriptedMlp({4, 4, 4, 3}, "return self.logits(x)", true), {4}, 3, at::kCPU);
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(NumParameters((*network)->shape().parameters), 4 * 4 + 4 + 4 + 3 * 4 + 3);
}

}  // namespace
}  // namespace chainfleet
