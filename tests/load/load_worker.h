// A worker without computation: it synchronizes, takes chains and commits on time, to load a server with any number of
// workers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "core/domain/worker_protocol.h"
#include "tests/load/load_stats.h"
#include "worker/runtime/session/coordinator_port.h"

namespace chainfleet {

struct LoadWorkerOptions {
  std::string id;
  int32_t chain_slots = 20;
  absl::Duration commit_period = absl::Seconds(10);  // for each chain
  int64_t draws = 0;  // in each commit, as one object of the store; 0: only resume points
  uint64_t seed = 0;  // seeds the phases of the chains' commits
};

// Thread-safe.
class LoadWorker {
 public:
  // Owns nothing; all arguments outlive the worker's calls.
  LoadWorker(LoadWorkerOptions options, CoordinatorPort* port, const Clock* clock, Executor* executor,
             LoadStats* stats);
  void Start();
  // Starts no further commit.
  void Stop();

 private:
  struct Chain {
    int64_t epoch = 0, step = 0, num_draws = 0;
    DigestHex last_digest;
    absl::Duration due;  // time of its next commit
    bool hand_back = false;
  };

  void Synchronize();
  void OnReply(const absl::StatusOr<SynchronizeReply>& reply);
  void Take(const Grant& grant, absl::Duration now) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Obey(const StopOrder& order) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ScheduleCommit(const ChainId& chain, absl::Duration delay);
  void Commit(const ChainId& chain);
  void Send(const ProgressCommit& commit, absl::Duration began);
  void OnCommitted(const ProgressCommit& commit, absl::Duration began, const absl::Status& status);

  const LoadWorkerOptions options_;
  CoordinatorPort* const port_;
  const Clock* const clock_;
  Executor* const executor_;
  LoadStats* const stats_;
  Mutex mutex_;
  uint64_t seq_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  bool stopped_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  std::string store_incarnation_ CHAINFLEET_GUARDED_BY(mutex_);
  std::map<ChainId, Chain> chains_ CHAINFLEET_GUARDED_BY(mutex_);
  std::set<ChainId> seen_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
