// What a step of each sampler costs beside one of SGD, with momentum (sgd) and without (sgd_plain): 16 chains in one
// batch, batch 128, two threads. gradient_uncertainty adds per-example norms to sgld; cnn5 takes them layer by layer.
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

void Register(const std::string& model, const std::string& name, const SamplerSpec& sampler) {
  const std::string path = "sampler_step/" + model + "/" + name;
  benchmark::RegisterBenchmark(path.c_str(), [=](benchmark::State& state) { Run(state, model, sampler); })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

const bool registered = [] {
  const SamplerSpec uncertainty{GradientUncertaintySpec{.threshold = 0}};
  const SamplerSpec samplers[] = {{SgdSpec{}},        {SgldSpec{}},       {EmcmcSpec{}}, {SghmcSpec{}},
                                  {EmcmcGibbsSpec{}}, {EntropySgdSpec{}}, {SamSpec{}},   {BsamSpec{}}};
  for (const char* model : {"mlp", "lenet5"}) {
    Register(model, "sgd_plain", {SgdSpec{.momentum = 0}});
    for (const SamplerSpec& sampler : samplers) Register(model, sampler.name(), sampler);
  }
  for (const char* model : {"mlp", "lenet5", "cnn5"}) Register(model, uncertainty.name(), uncertainty);
  Register("cnn5", "sgld", {SgldSpec{}});
  return true;
}();

}  // namespace
}  // namespace chainfleet
