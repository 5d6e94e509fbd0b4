// Steps layered networks of width 1/8 with batches of 32: a batch of C chains against C batches of one chain, in turn.
// Few examples, so that the first step, which measures the run report, does not take longer than the measured steps.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "core/base/check.h"
#include "tests/bench/in_turn.h"
#include "tests/bench/network_bench.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet {
namespace {

constexpr int kChains = 4;
constexpr int64_t kExamples = 64;

using Batches = std::vector<std::unique_ptr<ChainBatch>>;

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
  const auto plan = NetworkBenchPlan({BuiltinModel{model, {}, 0.125}}, **data, kChains, 32);
  StepInTurn(state, {Stepping("one_by_one", plan, *data, false), Stepping("batched", plan, *data, true)},
             state.range(0) == 1 ? StepTime::kThreadCpu : StepTime::kElapsed);
}

const bool registered = [] {
  for (const std::string model :
       {"cnn5", "resnet18", "resnet20-frn", "resnet50", "preresnet164", "wideresnet28x10", "vgg16", "densenet161"}) {
    RegisterNetworkBench("network_steps/" + model, [=](benchmark::State& state) { RunNetwork(state, model); });
  }
  return true;
}();

}  // namespace
}  // namespace chainfleet
