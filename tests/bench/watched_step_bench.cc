// The cost of measurements during a worker's steps, relative to the steps alone, in turn: metrics as the worker counts
// them, and also the traces for diagnostics, as often as in a run of the length given here. The steps alone are
// timed as well: the cost of the bound on hung steps. Time of one thread.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <optional>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "tests/bench/in_turn.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/telemetry/worker_metrics.h"

namespace chainfleet {
namespace {

struct Setting {
  std::string name;
  ModelSpec model;
  int64_t run_steps;    // length of a run whose trace interval is used, unless trace_every is set
  int64_t block_steps;  // steps of a round
  int rounds;
  std::optional<int64_t> trace_every = std::nullopt;
};

constexpr int kChains = 4;

std::shared_ptr<ChainBatch> Batch(const Setting& setting, const std::shared_ptr<const ResidentDataset>& data,
                                  bool traced) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "bench";
  plan->spec.name = plan->job;
  plan->spec.model = setting.model;
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{1e-8}};
  plan->spec.temperature = 1e-4;
  plan->spec.num_steps = setting.run_steps;
  plan->spec.chains = kChains;
  if (data != nullptr) {
    plan->spec.dataset = "synthetic";
    plan->spec.prior.kind = GaussianPrior{25};
    plan->dataset = data->description();
    plan->normalisation = plan->dataset->normalisation;
  }
  const int64_t num_examples = data != nullptr ? data->description().num_rows : 1;
  const int64_t every = setting.trace_every.value_or(PlanSteps(plan->spec, num_examples).trace_every);
  plan->spec.trace_every = traced ? every : int64_t{1} << 39;
  plan->spec.num_steps = int64_t{1} << 40;
  auto made = ChainBatch::Create(plan, data, "cpu");
  CHAINFLEET_CHECK(made.ok()) << made.status().ToString();
  for (int c = 0; c < kChains; ++c) CHAINFLEET_CHECK((*made)->AddChain(c, std::nullopt).ok());
  return *std::move(made);
}

void Count(const std::vector<RowReport>& reports, absl::Duration took, WorkerMetrics* metrics) {
  StepCounts step{.chains = static_cast<int>(reports.size()), .took = took};
  for (const RowReport& report : reports) {
    step.gradients += report.gradients;
    step.accepted += report.accepted == true;
    step.rejected += report.accepted == false;
  }
  metrics->AddStep(step);
}

Alternative Stepping(const Setting& setting, const std::shared_ptr<const ResidentDataset>& data, std::string name,
                     bool traced, WorkerMetrics* metrics) {
  const std::shared_ptr<ChainBatch> batch = Batch(setting, data, traced);
  return {std::move(name), [=, steps = setting.block_steps] {
            static const SystemClock clock;
            for (int64_t i = 0; i < steps; ++i) {
              const absl::Duration began = clock.Monotonic();
              const auto reports = batch->Step();
              CHAINFLEET_CHECK(reports.ok());
              const absl::Duration took = clock.Monotonic() - began;
              benchmark::DoNotOptimize(took);
              if (metrics != nullptr) Count(*reports, took, metrics);
            }
          }};
}

void Run(benchmark::State& state, const Setting& setting) {
  at::set_num_threads(1);
  MetricsRegistry registry("worker");
  WorkerMetrics metrics(&registry, "cpu");
  const auto data = setting.model.has_data() ? SyntheticImages(60000) : nullptr;
  StepInTurn(state,
             {Stepping(setting, data, "bare", false, nullptr), Stepping(setting, data, "metrics", false, &metrics),
              Stepping(setting, data, "traced", true, &metrics)},
             StepTime::kThreadCpu);
}

void CountOneStep(benchmark::State& state) {
  MetricsRegistry registry("worker");
  WorkerMetrics metrics(&registry, "cpu");
  for (auto _ : state) metrics.AddStep({.chains = kChains, .gradients = kChains, .took = absl::Microseconds(2)});
}
BENCHMARK(CountOneStep)->Name("watched_step/count");

const bool registered = [] {
  // 12 epochs of 60,000 images in batches of 128; a run of seconds; every step traced, for the cost of a trace; 100,000
  // steps.
  for (const Setting& setting : {Setting{"lenet5", {BuiltinModel{"lenet5", {}}}, 5616, 16, 101},
                                 Setting{"lenet5_short", {BuiltinModel{"lenet5", {}}}, 160, 16, 101},
                                 Setting{"lenet5_each", {BuiltinModel{"lenet5", {}}}, 160, 10, 61, 1},
                                 Setting{"gaussian_1000", {GaussianPotential{1000, 1}}, 100'000, 2000, 201},
                                 Setting{"gaussian_10", {GaussianPotential{10, 1}}, 100'000, 2000, 201}}) {
    benchmark::RegisterBenchmark(("watched_step/" + setting.name).c_str(),
                                 [=](benchmark::State& state) { Run(state, setting); })
        ->Iterations(setting.rounds)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace chainfleet
