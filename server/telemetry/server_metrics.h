// Every metric of the server, and the only place of it that names one. docs/reference/metrics.md has the table.
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

// What the gauges show, counted by the caller at each scrape.
struct FleetCounts {
  std::map<JobState, int64_t> jobs;
  std::map<ChainState, int64_t> chains;
  int64_t draws = 0;                        // committed, of all jobs there are
  std::optional<int64_t> corrupt_segments;  // marked and not deleted; none if that could not be counted
  int64_t workers = 0, serving_workers = 0;
  int64_t chain_slots = 0;        // of workers that take chains
  int64_t waiting_chains = 0;     // of jobs that run
  absl::Duration oldest_wait;     // of the chain among them that waits longest
  std::optional<DiskSpace> data;  // of the data directory's disk; none if it could not be asked
};

// What the elastic mode shows: workers of the cluster by state, and totals since the start.
struct ScaleShown {
  int64_t desired = 0, pending = 0, running = 0, ending = 0;
  int64_t errors = 0, lost_jobs = 0;
};

// chainfleet_leader: a standby has this one alone.
Gauge& AddLeaderGauge(MetricsRegistry* registry);

// Thread-safe.
class ServerMetrics {
 public:
  explicit ServerMetrics(MetricsRegistry* registry);

  // One finished RPC: method "/chainfleet.v1.JobService/CreateJob", code "OK".
  void CountRpc(const std::string& method, const std::string& code, absl::Duration duration);
  // A committed draw object was found damaged or missing.
  void CountCorruptDraw() { corrupt_draws_.Add(); }
  // An object of a chain was not taken: by the reason of the error, or its code if it has none.
  void CountRefusedUpload(const absl::Status& why);
  // A call whose token is missing or wrong.
  void CountRefusedToken() { refused_tokens_.Add(); }
  // What `counts` has not stays as it was shown before: 0 would end an alert that holds.
  void Show(const FleetCounts& counts);
  // These series are there from the first call on.
  void ShowScale(const ScaleShown& shown);

 private:
  MetricsRegistry* const registry_;
  std::map<JobState, Gauge*> jobs_;
  std::map<ChainState, Gauge*> chains_;
  Gauge& draws_;
  Counter& corrupt_draws_;
  Counter& refused_tokens_;
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
  std::map<std::string, Counter*> refused_uploads_ CHAINFLEET_GUARDED_BY(mutex_);  // by outcome
  std::map<std::string, Histogram*> durations_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
