// The measurements of a load run, and their report.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace chainfleet {

// Durations and their percentiles. Not thread-safe.
class Latencies {
 public:
  void Add(absl::Duration latency) { milliseconds_.push_back(absl::ToDoubleMilliseconds(latency)); }
  int64_t count() const { return static_cast<int64_t>(milliseconds_.size()); }
  // Returns the durations that were added after the first `count`.
  Latencies After(int64_t count) const {
    Latencies later;
    later.milliseconds_.assign(milliseconds_.begin() + count, milliseconds_.end());
    return later;
  }
  // `part` is in [0, 1]; returns 0 if there are none.
  double Percentile(double part) const {
    if (milliseconds_.empty()) return 0;
    std::vector<double> sorted = milliseconds_;
    const auto nth = sorted.begin() + static_cast<int64_t>(part * static_cast<double>(sorted.size() - 1));
    std::nth_element(sorted.begin(), nth, sorted.end());
    return *nth;
  }

 private:
  std::vector<double> milliseconds_;
};

// Thread-safe.
class LoadStats {
 public:
  // A job's chains wait from now on.
  void Submitted(const std::string& job, absl::Duration now) {
    MutexLock lock(&mutex_);
    submitted_[job] = now;
  }
  // A worker got a chain of `job` for the first time.
  void Granted(const std::string& job, absl::Duration now) {
    MutexLock lock(&mutex_);
    granted_[job].push_back(now);
  }
  void Committed(absl::Duration latency, int64_t draws) {
    MutexLock lock(&mutex_);
    commits_.Add(latency);
    draws_ += draws;
  }
  // Counts a call that ended with `what`: its code and reason.
  void Failed(const std::string& what) {
    MutexLock lock(&mutex_);
    ++failures_[what];
  }

  struct Report {
    Latencies scheduling, commits;
    int64_t draws = 0;
    std::map<std::string, int64_t> failures;  // by code and reason
  };
  Report Take() {
    MutexLock lock(&mutex_);
    Report report{{}, commits_, draws_, failures_};
    for (const auto& [job, times] : granted_) {
      const auto submitted = submitted_.find(job);
      if (submitted == submitted_.end()) continue;  // its reply is still in flight
      for (const absl::Duration time : times) report.scheduling.Add(time - submitted->second);
    }
    return report;
  }

 private:
  Mutex mutex_;
  std::map<std::string, absl::Duration> submitted_ CHAINFLEET_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<absl::Duration>> granted_ CHAINFLEET_GUARDED_BY(mutex_);
  Latencies commits_ CHAINFLEET_GUARDED_BY(mutex_);
  int64_t draws_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int64_t> failures_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
