// A whole worker without threads and, unless a test supplies it, without arithmetic: real session, uploader, loader and
// device loop over fakes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_chain_batch.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"
#include "worker/runtime/device_loop.h"
#include "worker/runtime/session/worker_session.h"

namespace chainfleet {

struct CountingObserver final : RuntimeObserver {
  void OnStep(const StepFigures& step) override {
    chain_steps += step.rows;
    gradients += step.gradients;
    accepted += step.accepted;
    rejected += step.rejected;
  }
  void OnCommit(int64_t draws, int64_t bytes) override {
    draws_committed += draws;
    bytes_sent += bytes;
  }
  void OnShardUnit(absl::Duration) override { ++shard_units; }
  void OnShard(const ShardFigures& shard) override { shards.push_back(shard); }
  std::vector<ShardFigures> shards;
  int64_t gradients = 0, accepted = 0, rejected = 0;
  int64_t chain_steps = 0, draws_committed = 0, bytes_sent = 0, shard_units = 0;
};

// Returns a plan for `chains` chains without a data set.
inline std::shared_ptr<const JobPlan> AnalyticPlan(const std::string& job, int32_t chains) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = job;
  plan->spec.name = job;
  plan->spec.model.kind = GaussianPotential{8, 1};
  plan->spec.sampler.kind = EmcmcSpec{};
  plan->spec.chains = chains;
  plan->spec.num_steps = 20;
  return plan;
}

// One process. Before its destruction, drop its tasks that wait on the executor.
struct FakeWorker {
  struct Options {
    std::string name = "w0";
    std::string incarnation = "w0-1";
    int32_t slots = 4;
    int64_t upload_bytes = limits::kUploadQueueBytes;
  };
  // Steps chains in batches of `batches`.
  FakeWorker(CoordinatorPort* port, Executor* executor, const Clock* clock, ChainBatchFactory batches,
             const Options& options)
      : held(clock),
        fetcher(port, executor, RngKey{1}),
        inputs(&fetcher, executor, {executor, [this](const auto&) { return module_check; }}),
        loader(&fetcher, &inputs, executor),
        uploader({{.worker = options.name}, options.incarnation, options.upload_bytes, RngKey{2}}, port, &held,
                 executor, &observer),
        draws(&fetcher, executor),
        shards([](auto, auto) { return absl::UnimplementedError("no predictor here"); }, &draws, &inputs, executor,
               clock, &observer),
        device({0.5}, std::move(batches), &held, &uploader, &loader, &shards, &observer, clock),
        session({options.name, options.incarnation, "host", "", {{"cpu", int64_t{1} << 30, options.slots}}, RngKey{3}},
                port, &held, &uploader, executor, clock) {
    held.SetListeners([] {}, [this] { session.Wake(); });
  }
  // Steps batches that return the draws of `script`.
  FakeWorker(CoordinatorPort* port, ManualExecutor* executor, FakeClock* clock, FakeBatchScript* script,
             const std::string& name = "w0", int32_t slots = 4, int64_t upload_bytes = limits::kUploadQueueBytes)
      : FakeWorker(
            port, executor, clock,
            [script, clock](std::shared_ptr<const JobPlan> plan, auto) -> absl::StatusOr<std::unique_ptr<ChainBatch>> {
              if (script->create_status) return *script->create_status;
              return std::make_unique<FakeChainBatch>(script, clock, KindsOf(plan->spec).size());
            },
            {name, name + "-1", slots, upload_bytes}) {}

  CountingObserver observer;
  absl::Status module_check;  // the result of checking a module
  HeldChains held;
  ObjectFetcher fetcher;
  InputCache inputs;
  ChainLoader loader;
  DrawUploader uploader;
  DrawCache draws;
  ShardServer shards;
  DeviceLoop device;
  WorkerSession session;
};

// Runs executor and device in turns until nothing happens for a second, or `limit` of fake time has passed.
inline void RunWorker(FakeWorker* worker, ManualExecutor* executor, FakeClock* clock, absl::Duration limit) {
  const absl::Duration end = clock->Monotonic() + limit;
  while (clock->Monotonic() < end) {
    executor->RunUntilIdle();
    if (!worker->device.RunOnce()) executor->RunFor(absl::Milliseconds(50));
  }
}

}  // namespace chainfleet
