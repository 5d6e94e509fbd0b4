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

Histogram& StageHistogram(MetricsRegistry* registry, const std::string& stage) {
  return registry->AddHistogram("chainfleet_worker_shard_stage_seconds",
                                "Time of prediction shards by what it was spent on", DurationBounds(),
                                {{"stage", stage}});
}
Counter& ProposalCounter(MetricsRegistry* registry, const std::string& outcome) {
  return registry->AddCounter("chainfleet_worker_proposals_total", "Proposals of Metropolis chains by outcome",
                              {{"outcome", outcome}});
}
Counter& CacheCounter(MetricsRegistry* registry, const std::string& outcome) {
  return registry->AddCounter("chainfleet_worker_draw_cache_requests_total",
                              "Segments of draws that predictions asked the cache for, by outcome",
                              {{"outcome", outcome}});
}

}  // namespace

WorkerMetrics::WorkerMetrics(MetricsRegistry* registry, const std::string& device_kind)
    : chain_steps_(registry->AddCounter("chainfleet_worker_chain_steps_total",
                                        "Sampler steps, one per chain of a batch", {{"device", device_kind}})),
      gradients_(registry->AddCounter("chainfleet_worker_gradient_evaluations_total",
                                      "Gradients of a chain's potential that samplers took, each over one batch",
                                      {{"device", device_kind}})),
      accepted_(ProposalCounter(registry, "accepted")),
      rejected_(ProposalCounter(registry, "rejected")),
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
      load_seconds_(StageHistogram(registry, "load")),
      wait_seconds_(StageHistogram(registry, "wait")),
      compute_seconds_(StageHistogram(registry, "compute")),
      cache_hits_(CacheCounter(registry, "hit")),
      cache_misses_(CacheCounter(registry, "miss")),
      cache_bytes_(registry->AddGauge("chainfleet_worker_draw_cache_bytes", "Draws kept for predictions")),
      chains_(registry->AddGauge("chainfleet_worker_chains", "Chains this worker holds")),
      upload_queue_bytes_(
          registry->AddGauge("chainfleet_worker_upload_queue_bytes", "Draws and resume points not yet committed")) {}

void WorkerMetrics::AddStep(const StepCounts& step) {
  chain_steps_.Add(step.chains);
  gradients_.Add(static_cast<double>(step.gradients));
  accepted_.Add(static_cast<double>(step.accepted));
  rejected_.Add(static_cast<double>(step.rejected));
  step_seconds_.Observe(absl::ToDoubleSeconds(step.took));
}

void WorkerMetrics::AddCommit(int64_t draws, int64_t bytes) {
  commits_.Add();
  draws_.Add(static_cast<double>(draws));
  upload_bytes_.Add(static_cast<double>(bytes));
}

void WorkerMetrics::AddShardUnit(absl::Duration took) { shard_seconds_.Observe(absl::ToDoubleSeconds(took)); }

void WorkerMetrics::AddShard(absl::Duration load, absl::Duration wait, absl::Duration compute) {
  load_seconds_.Observe(absl::ToDoubleSeconds(load));
  wait_seconds_.Observe(absl::ToDoubleSeconds(wait));
  compute_seconds_.Observe(absl::ToDoubleSeconds(compute));
}

void WorkerMetrics::ShowDrawCache(const DrawCacheCounts& counts) {
  MutexLock lock(&mutex_);
  cache_hits_.Add(static_cast<double>(counts.hits - shown_.hits));
  cache_misses_.Add(static_cast<double>(counts.misses - shown_.misses));
  cache_bytes_.Set(static_cast<double>(counts.bytes));
  shown_ = counts;
}

}  // namespace chainfleet
