// The cost of a step of each sampler relative to SGD without momentum, all in turn, on two threads: 16 chains in one
// batch, minibatch 128. `sgld_update` and `emcmc_update` are the fused updates alone, over as much memory; the cost of
// noise is part of them. Per-example norms: gradient_uncertainty with sgld; cnn5, which takes them layer by layer, with
// two chains, minibatch 32 and few examples. MILE and SMILE: against SGD on the same 1,200 examples. SGD takes one
// gradient a step, the others two.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <cmath>

#include "core/base/check.h"
#include "core/domain/model_spec.h"
#include "tests/bench/in_turn.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/arena/theta_arena.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/kernels/update.h"

namespace chainfleet {
namespace {

struct Setting {
  std::string model;
  int chains = 16;
  int64_t batch_size = 128;
  int64_t examples = 60000;
};

constexpr double kStepSize = 1e-8, kTemperature = 1e-4;
constexpr SmileSpec kSmileDynamics{.optimizer_steps = 0, .warm_up_steps = 0, .decoherence_length = 1};

Alternative Stepping(const Setting& setting, const std::shared_ptr<const ResidentDataset>& data, std::string name,
                     const SamplerSpec& sampler) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "bench";
  plan->spec.name = plan->job;
  plan->spec.dataset = "synthetic";
  plan->spec.model.kind = BuiltinModel{setting.model, {}};
  if (!std::holds_alternative<BsamSpec>(sampler.kind)) plan->spec.prior.kind = GaussianPrior{25};
  plan->spec.sampler = sampler;
  const bool has_rate = sampler.is_microcanonical();
  plan->spec.schedule = {has_rate ? StepScale::kLearningRate : StepScale::kStepSize, ConstantSchedule{kStepSize}};
  plan->spec.temperature = kTemperature;
  plan->spec.batch_size = setting.batch_size;
  plan->spec.num_steps = int64_t{1} << 40;
  plan->spec.chains = setting.chains;
  plan->dataset = data->description();
  plan->normalisation = plan->dataset->normalisation;
  auto made = ChainBatch::Create(plan, data, "cpu");
  CHAINFLEET_CHECK(made.ok()) << made.status().ToString();
  const std::shared_ptr<ChainBatch> batch = *std::move(made);
  for (int c = 0; c < setting.chains; ++c) CHAINFLEET_CHECK(batch->AddChain(c, std::nullopt).ok());
  return {std::move(name), [batch] { CHAINFLEET_CHECK(batch->Step().ok()); }};
}

// The memory of one fused update of as many chains.
struct UpdateMemory {
  UpdateMemory(const Setting& setting, const Dataset& data)
      : layout(std::make_shared<const Layout>(
            *InferParameters(ModelSpec{BuiltinModel{setting.model, {}}}, data.input_shape, NumClasses(data.targets)))),
        theta(layout, Device()),
        theta_a(layout, Device()),
        gradient(layout, Device()) {
    for (ThetaArena* arena : {&theta, &theta_a, &gradient}) {
      for (int c = 0; c < setting.chains; ++c) arena->AddRow();
    }
    const auto noise = static_cast<float>(std::sqrt(2 * kStepSize * kTemperature));
    steps.assign(setting.chains, {RngKey{7}, 0, static_cast<float>(kStepSize), noise, 25, 0, 0, true});
    outcomes.resize(setting.chains);
  }

  std::shared_ptr<const Layout> layout;
  ThetaArena theta, theta_a, gradient;
  std::vector<RowStep> steps;
  std::vector<RowOutcome> outcomes;
};

Alternative Updating(const Setting& setting, const Dataset& data, bool anchored) {
  const auto memory = std::make_shared<UpdateMemory>(setting, data);
  UpdateBuffers buffers;
  buffers.spans = memory->layout->spans().data();
  buffers.num_spans = static_cast<int64_t>(memory->layout->spans().size());
  buffers.num_parameters = memory->layout->num_parameters();
  buffers.row_stride = memory->layout->row_stride();
  buffers.rows = setting.chains;
  buffers.theta = memory->theta.data();
  buffers.theta_a = anchored ? memory->theta_a.data() : nullptr;
  buffers.gradient = memory->gradient.data();
  return {anchored ? "emcmc_update" : "sgld_update", [memory, buffers] {
            for (RowStep& step : memory->steps) ++step.t;
            LangevinUpdateCpu(buffers, memory->steps.data(), memory->outcomes.data());
          }};
}

void RunSamplers(benchmark::State& state, const Setting& setting) {
  at::set_num_threads(2);
  const auto data = SyntheticImages(setting.examples);
  std::vector<Alternative> alternatives = {Stepping(setting, data, "sgd_plain", {SgdSpec{.momentum = 0}})};
  const SamplerSpec samplers[] = {{SgdSpec{}},        {SgldSpec{}},       {EmcmcSpec{}}, {SghmcSpec{}},
                                  {EmcmcGibbsSpec{}}, {EntropySgdSpec{}}, {SamSpec{}},   {BsamSpec{}}};
  for (const SamplerSpec& sampler : samplers) {
    alternatives.push_back(Stepping(setting, data, sampler.name(), sampler));
  }
  alternatives.push_back(Stepping(setting, data, "smile", {kSmileDynamics}));
  for (const bool anchored : {false, true}) alternatives.push_back(Updating(setting, data->description(), anchored));
  StepInTurn(state, alternatives);
}

void RunNorms(benchmark::State& state, const Setting& setting) {
  at::set_num_threads(2);
  const auto data = SyntheticImages(setting.examples);
  StepInTurn(state, {Stepping(setting, data, "sgld", {SgldSpec{}}),
                     Stepping(setting, data, "norms", {GradientUncertaintySpec{.threshold = 0}})});
}

void RunMicrocanonical(benchmark::State& state, const Setting& setting) {
  at::set_num_threads(2);
  const auto data = SyntheticImages(setting.examples);
  const MileSpec dynamics{.optimizer_steps = 0, .warm_up_steps = 0, .decoherence_length = 1};
  StepInTurn(state, {Stepping(setting, data, "sgd_plain", {SgdSpec{.momentum = 0}}),
                     Stepping(setting, data, "mile", {dynamics}), Stepping(setting, data, "smile", {kSmileDynamics})});
}

void Register(const std::string& name, const Setting& setting, void (*run)(benchmark::State&, const Setting&)) {
  const auto function = [=](benchmark::State& state) { run(state, setting); };
  benchmark::RegisterBenchmark((name + "/" + setting.model).c_str(), function)
      ->Iterations(31)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

const bool registered = [] {
  for (const char* model : {"mlp", "lenet5"}) {
    Register("sampler_step", {model}, RunSamplers);
    Register("example_norms", {model}, RunNorms);
  }
  Register("example_norms", {"cnn5", 2, 32, 128}, RunNorms);
  Register("mile_step", {"mlp", 4, 1200, 1200}, RunMicrocanonical);
  return true;
}();

}  // namespace
}  // namespace chainfleet
