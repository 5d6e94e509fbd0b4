// Every metric of the server is defined in this folder. docs/reference/metrics.md has the table.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "core/base/disk_space.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/domain/chain_state.h"
#include "core/metrics/metrics.h"

namespace chainfleet {

// Values of the gauges; the caller counts them at each scrape.
struct FleetCounts {
  std::map<JobState, int64_t> jobs;
  std::map<ChainState, int64_t> chains;
  int64_t draws = 0;                        // committed draws of all existing jobs
  std::optional<int64_t> corrupt_segments;  // marked and not deleted; nullopt if the count failed
  int64_t workers = 0, serving_workers = 0;
  int64_t chain_slots = 0;        // slots of workers that accept chains
  int64_t waiting_chains = 0;     // chains of running jobs
  absl::Duration oldest_wait;     // wait of the chain that has waited longest
  std::optional<DiskSpace> data;  // disk of the data directory; nullopt if the query failed
};

// Values of the elastic mode: workers of the cluster by state, and totals since the start.
struct ScaleShown {
  int64_t desired = 0, pending = 0, running = 0, ending = 0;
  int64_t errors = 0, lost_jobs = 0;
};

// Adds chainfleet_leader. A standby has only this gauge.
Gauge& AddLeaderGauge(MetricsRegistry* registry);

// Thread-safe.
class ServerMetrics {
 public:
  explicit ServerMetrics(MetricsRegistry* registry);

  // Counts a finished RPC: method "/chainfleet.v1.JobService/CreateJob", code "OK".
  void CountRpc(const std::string& method, const std::string& code, absl::Duration duration);
  // Counts a committed draw object that was found damaged or missing.
  void CountCorruptDraw() { corrupt_draws_.Add(); }
  // Counts a rejected object of a chain by the error's reason, or by its code if it has no reason.
  void CountRefusedUpload(const absl::Status& why);
  // Counts a call whose token is missing or wrong.
  void CountRefusedToken() { refused_tokens_.Add(); }
  // Counts a call that a bound refused, by reason and by the bound's name.
  void CountRefusedCall(const absl::Status& why);
  // Counts a line of the audit log that could not be written.
  void CountLostAuditLine() { lost_audit_lines_.Add(); }
  // Values that `counts` lacks keep their last value: 0 would end an active alert.
  void Show(const FleetCounts& counts);
  // These series exist from the first call on.
  void ShowScale(const ScaleShown& shown);

 private:
  MetricsRegistry* const registry_;
  std::map<JobState, Gauge*> jobs_;
  std::map<ChainState, Gauge*> chains_;
  Gauge& draws_;
  Counter& corrupt_draws_;
  Counter& refused_tokens_;
  Counter& lost_audit_lines_;
  Gauge& corrupt_segments_;
  Gauge& workers_;
  Gauge& serving_workers_;
  Gauge& chain_slots_;
  Gauge& waiting_chains_;
  Gauge& waiting_seconds_;
  Gauge& data_size_;
  Gauge& data_free_;
  Mutex mutex_;
  ScaleShown scale_shown_ CHAINFLEET_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, std::string>, Counter*> rpcs_ CHAINFLEET_GUARDED_BY(mutex_);
  std::map<std::string, Histogram*> durations_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
