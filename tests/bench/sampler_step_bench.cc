// What a step of each sampler costs beside one of SGD: 16 chains in one batch, batch 128, two threads. The difference
// of sgd and sgld is the noise; gradient_uncertainty adds per-example norms to sgld.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "core/base/check.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/chain_batch.h"

namespace chainfleet {
namespace {

constexpr int kChains = 16;

std::unique_ptr<ChainBatch> MakeBatch(const std::string& model, const SamplerSpec& sampler) {
  static const auto* data = new std::shared_ptr<const ResidentDataset>(SyntheticImages(60000));
  auto plan = std::make_shared<JobPlan>();
  plan->job = "bench";
  plan->spec.name = plan->job;
  plan->spec.dataset = "synthetic";
  plan->spec.model.kind = BuiltinModel{model, {}};
  if (!std::holds_alternative<BsamSpec>(sampler.kind)) plan->spec.prior.kind = GaussianPrior{25};
  plan->spec.sampler = sampler;
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{1e-8}};
  plan->spec.temperature = 1e-4;
  plan->spec.num_steps = int64_t{1} << 40;
  plan->spec.chains = kChains;
  plan->dataset = (*data)->description();
  plan->normalisation = plan->dataset->normalisation;
  auto batch = ChainBatch::Create(plan, *data, "cpu");
  CHAINFLEET_CHECK(batch.ok()) << batch.status().ToString();
  return *std::move(batch);
}

void Run(benchmark::State& state, const std::string& model, const SamplerSpec& sampler) {
  at::set_num_threads(2);
  const auto batch = MakeBatch(model, sampler);
  for (int c = 0; c < kChains; ++c) CHAINFLEET_CHECK(batch->AddChain(c, std::nullopt).ok());
  CHAINFLEET_CHECK(batch->Step().ok());  // the first measures what the run report tells
  for (auto _ : state) CHAINFLEET_CHECK(batch->Step().ok());
  state.SetItemsProcessed(state.iterations() * kChains);
}

const bool registered = [] {
  const SamplerSpec samplers[] = {{SgdSpec{}},   {SgldSpec{}},       {EmcmcSpec{}},
                                  {SghmcSpec{}}, {EmcmcGibbsSpec{}}, {EntropySgdSpec{}},
                                  {SamSpec{}},   {BsamSpec{}},       {GradientUncertaintySpec{.threshold = 0}}};
  for (const char* model : {"mlp", "lenet5"}) {
    for (const SamplerSpec& sampler : samplers) {
      const std::string name = std::string("sampler_step/") + model + "/" + sampler.name();
      benchmark::RegisterBenchmark(name.c_str(), [model, sampler](benchmark::State& s) { Run(s, model, sampler); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace chainfleet
