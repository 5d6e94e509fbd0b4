#include "worker/telemetry/worker_metrics.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace chainfleet {
namespace {

// Covers a step of a 10-parameter potential to one of a large network.
std::vector<double> DurationBounds() {
  std::vector<double> bounds;
  for (double bound = 2e-5; bound < 100; bound *= 2.5) bounds.push_back(bound);
  return bounds;
}

Histogram& StageHistogram(MetricsRegistry* registry, const std::string& stage) {
  return registry->AddHistogram("chainfleet_worker_shard_stage_seconds", "Seconds spent on prediction shards, by stage",
                                DurationBounds(), {{"stage", stage}});
}
Counter& ProposalCounter(MetricsRegistry* registry, const std::string& outcome) {
  return registry->AddCounter("chainfleet_worker_proposals_total", "Proposals of Metropolis chains by outcome",
                              {{"outcome", outcome}});
}
Counter& CacheCounter(MetricsRegistry* registry, const std::string& outcome) {
  return registry->AddCounter("chainfleet_worker_draw_cache_requests_total",
                              "Segments that predictions read through the draw cache, by outcome",
                              {{"outcome", outcome}});
}

}  // namespace

struct WorkerMetrics::Steps {
  Steps(MetricsRegistry* registry, const std::string& device_kind)
      : chain_steps(registry->AddCounter("chainfleet_worker_chain_steps_total",
                                         "Sampler steps, one per chain of a batch", {{"device", device_kind}})),
        gradients(registry->AddCounter("chainfleet_worker_gradient_evaluations_total",
                                       "Gradient evaluations of a chain's potential, each over one batch",
                                       {{"device", device_kind}})),
        accepted(ProposalCounter(registry, "accepted")),
        rejected(ProposalCounter(registry, "rejected")),
        seconds(registry->AddHistogram("chainfleet_worker_step_duration_seconds",
                                       "Seconds for one step of a batch of chains", bounds,
                                       {{"device", device_kind}})) {}

  void Add(const StepCounts& step) {
    const int64_t took = absl::ToInt64Nanoseconds(step.took);
    const auto bucket =
        std::ranges::find_if(bounds, [&](double bound) { return static_cast<double>(took) <= bound * 1e9; });
    chain_steps.Add(step.chains);
    gradients.Add(step.gradients);
    accepted.Add(step.accepted);
    rejected.Add(step.rejected);
    nanoseconds.Add(took);
    by_bucket[static_cast<size_t>(bucket - bounds.begin())].Add(1);
  }

  void Show() {
    MutexLock lock(&mutex);
    for (Tallied* counter : {&chain_steps, &gradients, &accepted, &rejected}) counter->Show();
    std::vector<double> counts;
    for (Tally& of_bucket : by_bucket) counts.push_back(of_bucket.Take());
    seconds.ObserveCounted(counts, nanoseconds.Take() * 1e-9);
  }

  // One thread adds, others read. Plain stores suffice; atomic additions to a histogram and four counters take 0.1 us.
  class Tally {
   public:
    void Add(int64_t n) { sum_.store(sum_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
    // The sum of the additions since the last Take.
    double Take() {
      const int64_t sum = sum_.load(std::memory_order_relaxed);
      return static_cast<double>(sum - std::exchange(taken_, sum));
    }

   private:
    std::atomic<int64_t> sum_ = 0;
    int64_t taken_ = 0;
  };
  struct Tallied : Tally {
    explicit Tallied(Counter& of) : counter(of) {}
    void Show() { counter.Add(Take()); }
    Counter& counter;
  };

  const std::vector<double> bounds = DurationBounds();
  Tallied chain_steps, gradients, accepted, rejected;
  Tally nanoseconds;
  std::vector<Tally> by_bucket{bounds.size() + 1};
  Histogram& seconds;
  Mutex mutex;  // held while the sums are shown
};

WorkerMetrics::WorkerMetrics(MetricsRegistry* registry, const std::string& device_kind)
    : commits_(registry->AddCounter("chainfleet_worker_commits_total", "Commits that the server accepted")),
      draws_(registry->AddCounter("chainfleet_worker_draws_committed_total", "Draws in accepted commits")),
      upload_bytes_(registry->AddCounter("chainfleet_worker_upload_bytes_total",
                                         "Bytes of segments and resume points in accepted commits")),
      shard_seconds_(registry->AddHistogram("chainfleet_worker_shard_unit_duration_seconds",
                                            "Seconds of device time for one part of a prediction shard",
                                            DurationBounds(), {{"device", device_kind}})),
      load_seconds_(StageHistogram(registry, "load")),
      wait_seconds_(StageHistogram(registry, "wait")),
      compute_seconds_(StageHistogram(registry, "compute")),
      cache_hits_(CacheCounter(registry, "hit")),
      cache_misses_(CacheCounter(registry, "miss")),
      cache_bytes_(
          registry->AddGauge("chainfleet_worker_draw_cache_bytes", "Bytes of decoded draws cached for predictions")),
      chains_(registry->AddGauge("chainfleet_worker_chains", "Chains that this worker holds")),
      upload_queue_bytes_(registry->AddGauge("chainfleet_worker_upload_queue_bytes",
                                             "Bytes of draws and resume points not yet committed")),
      steps_(std::make_shared<Steps>(registry, device_kind)) {
  registry->BeforeScrape([steps = steps_] { steps->Show(); });
}

void WorkerMetrics::AddStep(const StepCounts& step) { steps_->Add(step); }

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
