// The worker's metrics. Only this class names them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/metrics/metrics.h"

namespace chainfleet {

// The counts of one step of a batch of chains.
struct StepCounts {
  int64_t chains = 0, gradients = 0, accepted = 0, rejected = 0;
  absl::Duration took;
};

// Counts of the cache of decoded draws; hits and misses since the start.
struct DrawCacheCounts {
  int64_t hits = 0, misses = 0, bytes = 0;
};

// Thread-safe. `registry` outlives it.
class WorkerMetrics {
 public:
  // `device_kind`: "cpu" or "cuda".
  WorkerMetrics(MetricsRegistry* registry, const std::string& device_kind);

  // Called by one thread at a time. Sums until the next scrape, because a step of a small potential takes only 2 us.
  void AddStep(const StepCounts& step);
  void AddCommit(int64_t draws, int64_t bytes);
  void AddShardUnit(absl::Duration took);
  // Counts an answered shard with its times.
  void AddShard(absl::Duration load, absl::Duration wait, absl::Duration compute);
  void ShowDrawCache(const DrawCacheCounts& counts);
  void SetChains(int chains) { chains_.Set(chains); }
  void SetUploadQueue(int64_t bytes) { upload_queue_bytes_.Set(static_cast<double>(bytes)); }

 private:
  Counter& commits_;
  Counter& draws_;
  Counter& upload_bytes_;
  Histogram& shard_seconds_;
  Histogram& load_seconds_;
  Histogram& wait_seconds_;
  Histogram& compute_seconds_;
  Counter& cache_hits_;
  Counter& cache_misses_;
  Gauge& cache_bytes_;
  Gauge& chains_;
  Gauge& upload_queue_bytes_;
  struct Steps;  // since the last scrape
  const std::shared_ptr<Steps> steps_;

  Mutex mutex_;
  DrawCacheCounts shown_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
