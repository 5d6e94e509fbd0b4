// Jobs of networks for benchmarks, on one thread and on two.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <string>

#include "core/domain/worker_protocol.h"
#include "worker/numerics/dataset/resident_dataset.h"

namespace chainfleet {

// SGLD whose step size is so small that theta hardly moves.
inline std::shared_ptr<const JobPlan> NetworkBenchPlan(const ModelSpec& model, const ResidentDataset& data, int chains,
                                                       int64_t batch_size) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "bench";
  plan->spec.name = plan->job;
  plan->spec.dataset = "synthetic";
  plan->spec.model = model;
  plan->spec.prior.kind = GaussianPrior{25};
  plan->spec.schedule = {StepScale::kLearningRate, ConstantSchedule{1e-6}};
  plan->spec.temperature = 1e-4;
  plan->spec.batch_size = batch_size;
  plan->spec.num_steps = int64_t{1} << 40;
  plan->spec.chains = chains;
  plan->dataset = data.description();
  plan->normalisation = plan->dataset->normalisation;
  return plan;
}

// `run` reads the number of threads from state.range(0).
inline void RegisterNetworkBench(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->ArgName("threads")
      ->Arg(1)
      ->Arg(2)
      ->Iterations(11)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace chainfleet
