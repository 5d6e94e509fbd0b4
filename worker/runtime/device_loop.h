// The work of a worker's one compute thread: it steps batches in turn and serves prediction shards between steps.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "worker/runtime/chain_batch_runner.h"
#include "worker/runtime/chain_loader.h"
#include "worker/runtime/shard_server.h"

namespace chainfleet {

// One thread calls RunOnce and IdleWait. While there is nothing to do, the caller waits for a wake or for IdleWait().
class DeviceLoop {
 public:
  struct Options {
    // Largest share of device time that predictions take while chains could step. Evaluations have a share of the same
    // size of their own, so a prediction never waits for time that an evaluation used. In (0, 1].
    double serve_share = 0.5;
  };
  DeviceLoop(Options options, ChainBatchFactory factory, HeldChains* held, DrawUploader* uploader, ChainLoader* loader,
             ShardServer* shards, RuntimeObserver* observer, const Clock* clock);

  // Called, from any thread, when a chain has been loaded. Set once, before RunOnce.
  void SetListener(std::function<void()> on_loaded) { on_loaded_ = std::move(on_loaded); }

  // Accepts loaded chains, settles ended ones, runs a part of a shard if predictions are due, and steps one batch.
  // Returns false if there was nothing to do.
  bool RunOnce();

  // The longest wait after a RunOnce that returned false: drafts age and leases are renewed without a wake.
  absl::Duration IdleWait() const;

 private:
  struct Arrival {
    LeaseRef lease;
    absl::StatusOr<LoadedChain> loaded;
  };

  bool TakeChains(absl::Duration usual_step);
  void Load(const LeasedChain& chain);
  void Admit(const LoadedChain& loaded);
  bool ServeShard();
  absl::Duration& DebtFor(ShardServer::Kind kind) { return debts_[static_cast<int>(kind)]; }
  void PayDebts(absl::Duration time);  // pays with time that the chains got
  bool StepBatch();
  absl::Duration UsualStep() const;

  const Options options_;
  const ChainBatchFactory factory_;
  HeldChains* const held_;
  DrawUploader* const uploader_;
  ChainLoader* const loader_;
  ShardServer* const shards_;
  RuntimeObserver* const observer_;
  const Clock* const clock_;
  std::function<void()> on_loaded_ = [] {};

  std::map<LeaseRef, LeasedChain> loading_;
  std::map<std::string, std::unique_ptr<ChainBatchRunner>> runners_;  // by job
  std::string last_stepped_;                                          // id of the job that stepped last
  // Device time that predictions and evaluations used and that is owed to the chains.
  absl::Duration debts_[2];

  Mutex mutex_;
  std::deque<Arrival> arrivals_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
