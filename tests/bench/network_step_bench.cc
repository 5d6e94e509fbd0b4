// A step of layered networks, width 1/8, batch 32: a batch of C chains against C batches of one chain.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "core/base/check.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/chain_batch.h"

namespace chainfleet {
namespace {

constexpr int kChains = 4;

void RunNetwork(benchmark::State& state, const std::string& model, bool together) {
  at::set_num_threads(static_cast<int>(state.range(0)));
  static const auto* data = new std::shared_ptr<const ResidentDataset>(SyntheticImages(2000, {3, 32, 32}));
  auto plan = std::make_shared<JobPlan>();
  plan->job = "bench";
  plan->spec.name = plan->job;
  plan->spec.dataset = "synthetic";
  plan->spec.model.kind = BuiltinModel{model, {}, 0.125};
  plan->spec.prior.kind = GaussianPrior{25};
  plan->spec.schedule = {StepScale::kLearningRate, ConstantSchedule{1e-4}};
  plan->spec.temperature = 1e-4;
  plan->spec.batch_size = 32;
  plan->spec.num_steps = int64_t{1} << 40;
  plan->spec.chains = kChains;
  plan->dataset = (*data)->description();
  plan->normalisation = plan->dataset->normalisation;
  std::vector<std::unique_ptr<ChainBatch>> batches;
  for (int c = 0; c < kChains; ++c) {
    if (batches.empty() || !together) batches.push_back(*ChainBatch::Create(plan, *data, "cpu"));
    CHAINFLEET_CHECK(batches.back()->AddChain(c, std::nullopt).ok());
  }
  for (auto& batch : batches) CHAINFLEET_CHECK(batch->Step().ok());  // the first measures what the run report tells
  for (auto _ : state) {
    for (auto& batch : batches) CHAINFLEET_CHECK(batch->Step().ok());
  }
  state.SetItemsProcessed(state.iterations() * kChains);
}

const bool registered = [] {
  for (const std::string model :
       {"cnn5", "resnet18", "resnet20-frn", "resnet50", "preresnet164", "wideresnet28x10", "vgg16", "densenet161"}) {
    for (const bool together : {true, false}) {
      const std::string name = "network_steps/" + model + (together ? "/batched" : "/one_by_one");
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { RunNetwork(state, model, together); })
          ->ArgName("threads")
          ->Arg(1)
          ->Arg(2)
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace chainfleet
