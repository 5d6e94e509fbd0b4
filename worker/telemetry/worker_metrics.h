// The worker's metrics: the only place of the worker that names one.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "core/metrics/metrics.h"

namespace chainfleet {

// Thread-safe. `registry` outlives it.
class WorkerMetrics {
 public:
  // `device_kind`: "cpu" or "cuda".
  WorkerMetrics(MetricsRegistry* registry, const std::string& device_kind);

  void AddStep(int chains, absl::Duration took);
  void AddCommit(int64_t draws, int64_t bytes);
  void AddShardUnit(absl::Duration took);
  void SetChains(int chains) { chains_.Set(chains); }
  void SetUploadQueue(int64_t bytes) { upload_queue_bytes_.Set(static_cast<double>(bytes)); }

 private:
  Counter& chain_steps_;
  Histogram& step_seconds_;
  Counter& commits_;
  Counter& draws_;
  Counter& upload_bytes_;
  Histogram& shard_seconds_;
  Gauge& chains_;
  Gauge& upload_queue_bytes_;
};

}  // namespace chainfleet
