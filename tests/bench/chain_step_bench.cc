// Chain-steps per second of whole jobs, batch 128, every chain with mini-batches of its own: C chains in one batch,
// against one chain at a time and against a loop over chains in eager LibTorch.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn_like.h>
#include <benchmark/benchmark.h>

#include <cmath>

#include "core/base/check.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/models/eager_potential.h"
#include "worker/numerics/potentials/minibatch.h"

namespace chainfleet {
namespace {

constexpr int64_t kBatch = 128;
constexpr float kStepSize = 1e-8f, kNoise = 1e-6f;

const std::shared_ptr<const ResidentDataset>& Images() {
  static const auto* data = new std::shared_ptr<const ResidentDataset>(SyntheticImages(60000));
  return *data;
}

std::shared_ptr<const JobPlan> Plan(const std::string& model, bool anchor, int chains) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "bench";
  plan->spec.name = plan->job;
  plan->spec.dataset = "synthetic";
  plan->spec.model.kind = BuiltinModel{model, {}};
  plan->spec.prior.kind = GaussianPrior{25};
  if (anchor) plan->spec.sampler.kind = EmcmcSpec{};
  plan->spec.schedule.scale = StepScale::kStepSize;
  plan->spec.schedule.kind = ConstantSchedule{kStepSize};
  plan->spec.temperature = 1e-4;
  plan->spec.batch_size = kBatch;
  plan->spec.num_steps = int64_t{1} << 40;
  plan->spec.chains = chains;
  plan->dataset = Images()->description();
  plan->normalisation = plan->dataset->normalisation;
  return plan;
}

// `together`: all chains in one batch; otherwise a batch of one each.
void RunBatches(benchmark::State& state, const std::string& model, bool anchor, bool together) {
  const int chains = static_cast<int>(state.range(0));
  at::set_num_threads(static_cast<int>(state.range(1)));
  std::vector<std::unique_ptr<ChainBatch>> batches;
  for (int c = 0; c < chains; ++c) {
    if (batches.empty() || !together) {
      batches.push_back(*ChainBatch::Create(Plan(model, anchor, chains), Images(), "cpu"));
    }
    CHAINFLEET_CHECK(batches.back()->AddChain(c, std::nullopt).ok());
  }
  for (auto& batch : batches) CHAINFLEET_CHECK(batch->Step().ok());  // the first measures what the run report tells
  for (auto _ : state) {
    for (auto& batch : batches) CHAINFLEET_CHECK(batch->Step().ok());
  }
  state.SetItemsProcessed(state.iterations() * chains);
}

// The plain alternative: a loop over networks, autograd, an eager update.
void RunEager(benchmark::State& state, const std::string& model, bool anchor) {
  const int64_t chains = state.range(0);
  at::set_num_threads(static_cast<int>(state.range(1)));
  const Dataset& data = Images()->description();
  const ModelSpec spec{BuiltinModel{model, {}}};
  const auto layout =
      std::make_shared<const Layout>(*InferParameters(spec, data.input_shape, NumClasses(data.targets)));
  const auto potential = MakeEagerPotential(*InferNetwork(spec, data.input_shape, NumClasses(data.targets)), layout,
                                            Images(), {data.normalisation, {}, 25}, Device(), ChainBatching::kTogether);
  const MinibatchPlan minibatches(Minibatches::kReshuffle, data.num_rows, kBatch);
  std::vector<ThetaArena> theta, theta_a, gradient;
  for (int64_t c = 0; c < chains; ++c) {
    for (auto* arenas : {&theta, &theta_a, &gradient}) {
      arenas->emplace_back(layout, Device());
      arenas->back().AddRow();
    }
    RowsView(theta[c]).copy_(at::randn_like(RowsView(theta[c])) * 0.05);
    RowsView(theta_a[c]).copy_(RowsView(theta[c]));
  }
  std::vector<int64_t> ids(kBatch);
  int64_t t = 0;
  for (auto _ : state) {
    for (int64_t c = 0; c < chains; ++c) {
      double energy = 0;
      minibatches.Fill(Fold(RngKey{1}, c), t, ids.data());
      potential->Evaluate(theta[c], {ids.data(), kBatch}, &gradient[c], &energy);
      const at::Tensor x = RowsView(theta[c]), a = RowsView(theta_a[c]);
      at::Tensor drift = RowsView(gradient[c]) + x * 25;
      if (anchor) {
        const at::Tensor pull = (x - a) * 2500;
        drift += pull;
        a.add_(pull, kStepSize).add_(at::randn_like(a), kNoise);
      }
      x.sub_(drift, kStepSize).add_(at::randn_like(x), kNoise);
    }
    ++t;
  }
  state.SetItemsProcessed(state.iterations() * chains);
}

const bool registered = [] {
  for (const std::string model : {"mlp", "lenet5"}) {
    for (const bool anchor : {false, true}) {
      const std::string name = model + (anchor ? "/emcmc" : "/sgld");
      const auto with_args = [](benchmark::internal::Benchmark* b, const std::vector<int64_t>& chains) {
        b->ArgNames({"chains", "threads"})->ArgsProduct({chains, {1, 2}})->UseRealTime()->Unit(benchmark::kMillisecond);
      };
      const auto run = [=](auto function, auto... args) {
        return [=](benchmark::State& state) { function(state, model, anchor, args...); };
      };
      with_args(benchmark::RegisterBenchmark(("chain_steps/batched/" + name).c_str(), run(RunBatches, true)),
                {1, 4, 16});
      with_args(benchmark::RegisterBenchmark(("chain_steps/one_by_one/" + name).c_str(), run(RunBatches, false)),
                {1, 4, 16});
      with_args(benchmark::RegisterBenchmark(("chain_steps/eager/" + name).c_str(), run(RunEager)), {1, 4, 16});
    }
  }
  return true;
}();

}  // namespace
}  // namespace chainfleet
