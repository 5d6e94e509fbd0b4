// Compares modules that run in processes of their own with the same modules in this process, bit for bit.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <torch/csrc/autograd/autograd.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/base/thread_pool.h"
#include "core/base/utf8.h"
#include "tests/support/model_files.h"
#include "tests/support/network_chains.h"
#include "tests/support/network_fixture.h"
#include "tests/support/one_stack.h"
#include "tests/support/script_file.h"
#include "worker/numerics/models/confined_network.h"
#include "worker/numerics/models/script_loading.h"
#include "worker/numerics/models/scripted_network.h"
#include "worker/numerics/potentials/curvature.h"
#include "worker/numerics/predict/predictor.h"
#include "worker/numerics/tensors/single_threaded.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

constexpr int64_t kRows = 7;
const char* const kBodies[] = {
    "return self.logits(x)",
    // Convolutions and a product, whose kernels are written by oneDNN while the module runs.
    "y = torch.conv2d(x.reshape(-1, 1, 28, 28), torch.ones([4, 1, 5, 5]), None, [2, 2])\n"
    "  return self.logits(x) + 0.01 * torch.matmul(y.flatten(1), torch.ones([576, 10]))",
    "h = torch.layer_norm(x.flatten(1), [784])\n  return self.logits(torch.gelu(h)) * torch.sigmoid(h.mean(1, True))",
    "return torch.linear(x.flatten(1), self.fc1.weight)[:, :10] + 0.0 * x.flatten(1)[:, :10]",  // leaves parameters
                                                                                                // unused
    "h = x.flatten(1)\n  for i in range(3):\n    h = torch.tanh(h)\n  return self.logits(torch.softmax(h, 1))"};

// The ids of the processes that this one has started.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stat(entry.path() / "stat");
    std::string id, name, state, parent;
    if (stat >> id >> name >> state >> parent && parent == std::to_string(getpid())) children.push_back(std::stoi(id));
  }
  return children;
}

class ConfinedNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(2); }

  absl::StatusOr<std::shared_ptr<const StoredNetwork>> Confined(const std::string& bytes,
                                                                const std::vector<int64_t>& input_shape = {1, 28, 28},
                                                                int64_t num_outputs = 10) {
    return ConfinedNetwork::Load(processes_, std::make_shared<const std::string>(bytes),
                                 {kScriptPath, input_shape, num_outputs, at::kCPU, {}});
  }

  ThreadPool starter_{1};
  const std::shared_ptr<ModuleProcesses> processes_ =
      std::make_shared<ModuleProcesses>(CHAINFLEET_MODULE_PROCESS, 4, &starter_);
};

// Parameters at odd places of one buffer, as those of a draw are.
Tensors SomeParameters(const NetworkShape& shape, bool gradients) {
  const at::Tensor draw = at::remainder(at::arange(shape.draw_size() + 1, at::kFloat) * 0.618034, 0.2) - 0.1;
  Tensors parameters = TensorsOfDraw(shape.parameters, draw.narrow(0, 1, shape.draw_size()));
  for (at::Tensor& parameter : parameters) parameter = parameter.detach().requires_grad_(gradients);
  return parameters;
}

at::Tensor SomeInputs(double scale = 0.754877) {
  return (at::remainder(at::arange(kRows * 784, at::kFloat) * scale, 2) - 1).view({1, kRows, 1, 28, 28});
}

// Logits, then gradients by the parameters and x for each of three columns from one graph.
Tensors Outcome(const StoredNetwork& network, const at::Tensor& inputs = SomeInputs()) {
  const c10::AutoGradMode autograd(true);
  Tensors leaves = SomeParameters(network.shape(), true);
  const at::Tensor x = inputs.detach().requires_grad_(true);
  const at::Tensor logits = network.Logits(leaves, x);
  leaves.push_back(x);
  Tensors outcome = {logits.detach()};
  for (int64_t k = 0; k < 3; ++k) {
    const at::Tensor loss = at::log_softmax(logits, 2).select(2, k).sum();
    for (const at::Tensor& gradient : torch::autograd::grad({loss}, leaves, {}, /*retain_graph=*/k < 2, false, true)) {
      outcome.push_back(gradient.defined() ? gradient : at::Tensor());
    }
  }
  return outcome;
}

void ExpectSameBits(const Tensors& here, const Tensors& there, const std::string& what) {
  ASSERT_EQ(here.size(), there.size()) << what;
  for (size_t i = 0; i < here.size(); ++i) {
    ASSERT_EQ(here[i].defined(), there[i].defined()) << what << " " << i;
    EXPECT_TRUE(!here[i].defined() || at::equal(here[i], there[i])) << what << " " << i;
  }
}

std::shared_ptr<const StoredNetwork> InProcess(const std::string& bytes) {
  return *ScriptedNetwork::Load(bytes, {1, 28, 28}, 10, at::kCPU);
}

TEST_F(ConfinedNetworkTest, HasTheBitsOfTheModuleInThisProcess) {
  for (const char* body : kBodies) {
    const std::string bytes = ScriptedMlp({784, 50, 10}, body);
    const auto confined = Confined(bytes);
    ASSERT_TRUE(confined.ok()) << confined.status() << body;
    const auto here = InProcess(bytes);
    RunSingleThreaded(1, [&](int64_t) {
      ExpectSameBits(Outcome(**confined), Outcome(*here), body);
      const Tensors parameters = SomeParameters(here->shape(), false);
      ExpectSameBits({(*confined)->Logits(parameters, SomeInputs())}, {here->Logits(parameters, SomeInputs())}, body);
    });
  }
}

TEST_F(ConfinedNetworkTest, HasTheShapesAndValuesOfTheModuleInThisProcess) {
  const std::string bytes = ScriptedMlp({4, 4, 4, 3}, "return self.logits(x)", /*tied=*/true);
  const auto confined = Confined(bytes, {4}, 3);
  ASSERT_TRUE(confined.ok()) << confined.status();
  const auto here = *ScriptedNetwork::Load(bytes, {4}, 3, at::kCPU);
  ASSERT_EQ((*confined)->shape().parameters.size(), here->shape().parameters.size());
  for (size_t k = 0; k < here->shape().parameters.size(); ++k) {
    const ParameterShape &one = (*confined)->shape().parameters[k], &other = here->shape().parameters[k];
    EXPECT_EQ(std::tie(one.name, one.shape, one.offset, one.fan_in, one.initial),
              std::tie(other.name, other.shape, other.offset, other.fan_in, other.initial));
    EXPECT_TRUE(std::equal(one.stored.get(), one.stored.get() + NumValues(one.shape), other.stored.get()));
  }
}

TEST_F(ConfinedNetworkTest, ServesSeveralThreadsAndSeveralPassesOfAThreadAtATime) {
  const std::string bytes = ScriptedMlp({784, 50, 10}, kBodies[1]);
  const auto confined = *Confined(bytes);
  const auto here = InProcess(bytes);
  RunSingleThreaded(8, [&](int64_t i) {
    const at::Tensor x = SomeInputs(0.1 + 0.07 * static_cast<double>(i));
    ExpectSameBits(Outcome(*confined, x), Outcome(*here, x), std::to_string(i));
  });
  RunSingleThreaded(1, [&](int64_t) {
    const c10::AutoGradMode autograd(true);
    const auto both = [](const StoredNetwork& network) {
      const Tensors leaves = SomeParameters(network.shape(), true);
      const at::Tensor logits = network.Logits(leaves, SomeInputs()) * network.Logits(leaves, SomeInputs(0.3));
      return torch::autograd::grad({logits.square().sum()}, leaves);
    };
    ExpectSameBits(both(*confined), both(*here), "a product of two passes");
  });
}

TEST_F(ConfinedNetworkTest, ThrowsWhenItsProcessEndsAndStartsAnother) {
  const std::string bytes = ScriptedMlp({784, 10});
  const auto confined = *Confined(bytes);
  const Tensors parameters = SomeParameters(confined->shape(), true);
  const at::Tensor before = confined->Logits(parameters, SomeInputs());
  for (const pid_t child : Children()) kill(child, SIGKILL);
  EXPECT_THAT([&] { before.sum().backward(); }, ::testing::ThrowsMessage<std::runtime_error>(
                                                    HasSubstr("the process that runs the module ends by signal 9")));
  EXPECT_TRUE(at::equal(confined->Logits(parameters, SomeInputs()), before));
}

// A worker that gets these signals still needs its modules, to reach a resume point.
TEST_F(ConfinedNetworkTest, ItsProcessOutlivesSignalsThatStopAWorker) {
  const auto confined = *Confined(ScriptedMlp({784, 10}));
  const Tensors parameters = SomeParameters(confined->shape(), false);
  const at::Tensor before = confined->Logits(parameters, SomeInputs());
  const std::vector<pid_t> children = Children();
  ASSERT_EQ(children.size(), 1u);
  for (const int number : {SIGTERM, SIGINT}) ASSERT_EQ(kill(children[0], number), 0);
  EXPECT_TRUE(at::equal(confined->Logits(parameters, SomeInputs()), before));
  EXPECT_EQ(Children(), children) << "the same process answers";
}

TEST_F(ConfinedNetworkTest, AModuleIsAtFaultForTheEndOfItsProcessUnlessAnotherOneKilledIt) {
  for (const auto& [signal, code] : {std::pair(SIGKILL, absl::StatusCode::kResourceExhausted),
                                     std::pair(SIGUSR1, absl::StatusCode::kInvalidArgument)}) {
    const auto process = *ModuleProcess::Start(CHAINFLEET_MODULE_PROCESS);
    ModuleWriter message(process->memory());
    message.Add(static_cast<int64_t>(ModuleCall::kLoad));
    message.Add(std::string_view("no module"));
    for (const pid_t child : Children()) kill(child, signal);
    const absl::Status status = process->Call().status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(status.ToString(), HasSubstr(absl::StrCat("by signal ", signal)));
  }
}

TEST_F(ConfinedNetworkTest, ThrowsWhatTheModuleThrows) {
  const auto confined =
      Confined(ScriptedMlp({784, 10}, "assert bool(x.sum() < 1000.0), \"too bright\"\n  return self.logits(x)"));
  ASSERT_TRUE(confined.ok()) << confined.status();
  const Tensors parameters = SomeParameters((*confined)->shape(), false);
  EXPECT_THAT(
      [&] {
        (*confined)->Logits(parameters, at::ones({1, kRows, 1, 28, 28}));
      },
      ::testing::ThrowsMessage<std::exception>(HasSubstr("too bright")));
  EXPECT_EQ((*confined)->Logits(parameters, SomeInputs()).size(1), kRows) << "the process goes on";
}

// The server refuses calls with other bytes, and so would end the worker's session.
TEST_F(ConfinedNetworkTest, ErrorsOfAModuleAreUtf8) {
  const auto confined = Confined(
      ScriptedMlp({784, 10}, "assert bool(x.sum() < 1000.0), \"too bright\" + chr(200)\n  return self.logits(x)"));
  ASSERT_TRUE(confined.ok()) << confined.status();
  const Tensors parameters = SomeParameters((*confined)->shape(), false);
  try {
    (*confined)->Logits(parameters, at::ones({1, kRows, 1, 28, 28}));
    ADD_FAILURE() << "the module raises";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("too bright"));
    EXPECT_EQ(ValidUtf8(error.what()), error.what());
  }
}

// A module may keep what it was given in its attributes.
TEST_F(ConfinedNetworkTest, AProcessServesOneNetworkAndEndsWithIt) {
  const auto file = std::make_shared<const std::string>(ScriptedMlp({784, 10}));
  const StoredNetworkUse use{kScriptPath, {1, 28, 28}, 10, at::kCPU, {}};
  auto one = *ConfinedNetwork::Load(processes_, file, use);
  EXPECT_EQ(Children().size(), 1u);
  auto other = *ConfinedNetwork::Load(processes_, file, use);
  EXPECT_EQ(Children().size(), 2u);
  one->Logits(SomeParameters(one->shape(), false), SomeInputs());
  EXPECT_EQ(Children().size(), 2u) << "each has its own";
  one = nullptr;
  EXPECT_EQ(Children().size(), 1u);
  other = nullptr;
  EXPECT_EQ(Children().size(), 0u);
}

TEST_F(ConfinedNetworkTest, RefusesWhatIsRefusedInThisProcess) {
  const std::string whole = ScriptedMlp({4, 5, 3});
  for (const std::string& bytes :
       {whole, whole.substr(0, whole.size() / 2), std::string(), ScriptedMlp({4, 5, 2}),
        ScriptedMlp({4, 3}, "return self.logits(x) + torch.rand([3])"),
        ScriptedMlp({4, 3}, "self.seen.add_(1.0)\n  return self.logits(x)"),
        ScriptedMlp({4, 3}, "print(x)\n  return self.logits(x)"),
        ScriptedMlp({4, 3}, "return self.logits(x) + torch.empty([1])"), ScriptedMlp({7, 3})}) {
    EXPECT_EQ(Confined(bytes, {4}, 3).status(), ScriptedNetwork::Load(bytes, {4}, 3, at::kCPU).status());
  }
}

TEST_F(ConfinedNetworkTest, AChainAndItsCurvatureHaveTheSameBits) {
  const auto data = SyntheticImages(60);
  const auto outcome = [&](const std::shared_ptr<const ModelFile>& file) {
    auto plan = NetworkPlan({StoredNetworkModel{"mine", ModelFormat::kTorchScript}}, {SgldSpec{}}, *data);
    plan->spec.prior.kind = GaussianPrior{25};
    const auto batch = ChainBatch::Create(plan, data, "cpu", file);
    EXPECT_TRUE(batch.ok()) << batch.status();
    EXPECT_TRUE((*batch)->AddChain(2, std::nullopt).ok());
    for (int step = 0; step < 3; ++step) EXPECT_TRUE((*batch)->Step().ok());
    std::vector<float> theta = (*batch)->TakeDraw(2).theta[0];
    const auto potential = *MakeNetworkPotential(*plan, data, Device(), file.get());
    Curvature curvature;
    const CurvatureSlice slice{&curvature, 3, 5};
    ThetaArena arena(potential->layout(), Device());
    arena.AddRow();
    arena.WriteRow(0, theta);
    EXPECT_TRUE(potential->AddCurvature(arena, &slice));
    const auto predict = std::make_shared<PredictPlan>(PredictPlan{
        "parity-aaaaaa", plan->spec.model, {1, 28, 28}, Classes{10}, data->description().normalisation, {}});
    const auto predictor = Predictor::Create(predict, "cpu", file);
    EXPECT_TRUE(predictor.ok()) << predictor.status();
    const DrawStack stack = {
        {"parity-aaaaaa", 2}, DrawKind::kTheta, {1}, {std::make_shared<std::vector<float>>(theta)}};
    const std::vector<double> p = PredictRows(*predictor, stack, *data, 0, 20, true, false)->classes().sum_wp;
    return Tensors{at::tensor(theta), curvature.diagonal, at::tensor(p)};
  };
  const auto bytes = std::make_shared<const std::string>(ScriptedMlp({784, 20, 10}));
  ExpectSameBits(outcome(std::make_shared<const ModelFile>(ModelFile{ScriptFile{bytes, processes_}})),
                 outcome(FileOf(*bytes)), "a chain");
}

}  // namespace
}  // namespace chainfleet
