#include "worker/telemetry/worker_metrics.h"

#include <vector>

namespace chainfleet {
namespace {

// From a 10-parameter potential to a large network.
std::vector<double> DurationBounds() {
  std::vector<double> bounds;
  for (double bound = 2e-5; bound < 100; bound *= 2.5) bounds.push_back(bound);
  return bounds;
}

}  // namespace

WorkerMetrics::WorkerMetrics(MetricsRegistry* registry, const std::string& device_kind)
    : chain_steps_(registry->AddCounter("chainfleet_worker_chain_steps_total",
                                        "Sampler steps, one per chain of a batch", {{"device", device_kind}})),
      step_seconds_(registry->AddHistogram("chainfleet_worker_step_duration_seconds",
                                           "Time of one step of a batch of chains", DurationBounds(),
                                           {{"device", device_kind}})),
      commits_(registry->AddCounter("chainfleet_worker_commits_total", "Commits the server accepted")),
      draws_(registry->AddCounter("chainfleet_worker_draws_committed_total", "Draws in accepted commits")),
      upload_bytes_(registry->AddCounter("chainfleet_worker_upload_bytes_total",
                                         "Bytes of segments and resume points in accepted commits")),
      shard_seconds_(registry->AddHistogram("chainfleet_worker_shard_unit_duration_seconds",
                                            "Device time of one part of a prediction shard", DurationBounds(),
                                            {{"device", device_kind}})),
      chains_(registry->AddGauge("chainfleet_worker_chains", "Chains this worker holds")),
      upload_queue_bytes_(
          registry->AddGauge("chainfleet_worker_upload_queue_bytes", "Draws and resume points not yet committed")) {}

void WorkerMetrics::AddStep(int chains, absl::Duration took) {
  chain_steps_.Add(chains);
  step_seconds_.Observe(absl::ToDoubleSeconds(took));
}

void WorkerMetrics::AddCommit(int64_t draws, int64_t bytes) {
  commits_.Add();
  draws_.Add(static_cast<double>(draws));
  upload_bytes_.Add(static_cast<double>(bytes));
}

void WorkerMetrics::AddShardUnit(absl::Duration took) { shard_seconds_.Observe(absl::ToDoubleSeconds(took)); }

}  // namespace chainfleet
