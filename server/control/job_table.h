// Jobs and chains as the store has them, and what workers last said of them. Plain data: no lock, clock or I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/domain/snapshot.h"
#include "core/store/state_store/state_store.h"
#include "server/control/views.h"

namespace chainfleet {

struct ChainEntry {
  ChainRow row;
  int64_t reported_step = 0;  // of the lease holder's memory
  ChainStats stats;
  std::string shunned_worker;  // gave the chain back unfinished: others are asked first
  absl::Duration not_before;   // of the monotonic clock: no grant until then, after an attempt that failed
  bool in_flight = false;      // a change of it is on the way to the store
};

struct JobEntry {
  JobRow row;
  std::vector<ChainEntry> chains;  // by index
  std::optional<Snapshot> newest_snapshot;
  JobState state = JobState::kPending;  // derived
  int64_t total_steps = 0;              // of one chain
  uint64_t version = 1;                 // rises with every change that shows
  // Indices of PENDING chains while the intent is RUN: those that may share a worker, and those that may not.
  std::set<int32_t> pending, suspects;
};

// Not thread-safe. Pointers stay valid until the job is removed.
class JobTable {
 public:
  JobEntry* Add(StoredJob stored);
  void Update(const JobRow& row);
  void Update(const ChainRow& row);
  void Remove(const std::string& id);

  JobEntry* Find(const std::string& id);
  ChainEntry* Find(const ChainId& id);
  // A job id, a name (its newest job that is not to be deleted), or "@latest". Null if there is none.
  JobEntry* Resolve(const std::string& name);

  // By age, oldest first.
  const std::map<int64_t, JobEntry*>& by_age() const { return by_age_; }
  // Those with pending chains, and those with pending suspects, by age.
  const std::map<int64_t, JobEntry*>& queue() const { return queue_; }
  const std::map<int64_t, JobEntry*>& suspect_queue() const { return suspect_queue_; }
  bool anything_waits() const { return !queue_.empty() || !suspect_queue_.empty(); }

 private:
  void Derive(JobEntry* job);

  std::map<std::string, JobEntry> jobs_;
  std::map<int64_t, JobEntry*> by_age_, queue_, suspect_queue_;
};

JobView ViewOf(const JobEntry& job);

}  // namespace chainfleet
