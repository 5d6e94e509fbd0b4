// Steps layered networks of width 1/8 with batches of 32: a batch of C chains against C batches of one chain, in turn.
// Few examples, so that the first step, which measures the run report, does not take longer than the measured steps.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "core/base/check.h"
#include "tests/bench/in_turn.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet {
namespace {

constexpr int kChains = 4;
constexpr int64_t kExamples = 64;

using Batches = std::vector<std::unique_ptr<ChainBatch>>;

std::shared_ptr<const JobPlan> Plan(const std::string& model, const ResidentDataset& data) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "bench";
  plan->spec.name = plan->job;
  plan->spec.dataset = "synthetic";
  plan->spec.model.kind = BuiltinModel{model, {}, 0.125};
  plan->spec.prior.kind = GaussianPrior{25};
  plan->spec.schedule = {StepScale::kLearningRate, ConstantSchedule{1e-6}};
  plan->spec.temperature = 1e-4;
  plan->spec.batch_size = 32;
  plan->spec.num_steps = int64_t{1} << 40;
  plan->spec.chains = kChains;
  plan->dataset = data.description();
  plan->normalisation = plan->dataset->normalisation;
  return plan;
}

Alternative Stepping(std::string name, const std::shared_ptr<const JobPlan>& plan,
                     const std::shared_ptr<const ResidentDataset>& data, bool together) {
  const auto batches = std::make_shared<Batches>();
  for (int c = 0; c < kChains; ++c) {
    if (batches->empty() || !together) batches->push_back(*ChainBatch::Create(plan, data, "cpu"));
    CHAINFLEET_CHECK(batches->back()->AddChain(c, std::nullopt).ok());
  }
  return {std::move(name), [batches] {
            for (auto& batch : *batches) CHAINFLEET_CHECK(batch->Step().ok());
          }};
}

void RunNetwork(benchmark::State& state, const std::string& model) {
  at::set_num_threads(static_cast<int>(state.range(0)));
  static const auto* data = new std::shared_ptr<const ResidentDataset>(SyntheticImages(kExamples, {3, 32, 32}));
  const auto plan = Plan(model, **data);
  StepInTurn(state, {Stepping("one_by_one", plan, *data, false), Stepping("batched", plan, *data, true)},
             state.range(0) == 1 ? StepTime::kThreadCpu : StepTime::kElapsed);
}

const bool registered = [] {
  for (const std::string model :
       {"cnn5", "resnet18", "resnet20-frn", "resnet50", "preresnet164", "wideresnet28x10", "vgg16", "densenet161"}) {
    const auto run = [=](benchmark::State& state) { RunNetwork(state, model); };
    benchmark::RegisterBenchmark(("network_steps/" + model).c_str(), run)
        ->ArgName("threads")
        ->Arg(1)
        ->Arg(2)
        ->Iterations(11)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace chainfleet
