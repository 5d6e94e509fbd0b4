// Computes prediction shards between the steps of chains: loads draws in the background, then runs on the device loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "core/base/tenant_turns.h"
#include "core/domain/prediction.h"
#include "worker/numerics/predict/predictor.h"
#include "worker/runtime/chain_loader.h"
#include "worker/runtime/draw_cache.h"
#include "worker/runtime/session/runtime_observer.h"

namespace chainfleet {

// Creates a predictor: Predictor::Create on this worker's device, or a fake.
using PredictorFactory = std::function<absl::StatusOr<std::unique_ptr<Predictor>>(
    std::shared_ptr<const PredictPlan> plan, std::shared_ptr<const ModelFile> module)>;

// Submit and Cancel are thread-safe; ServeOne belongs to the device loop's thread. Bounded: limits::kMaxQueuedShards.
// Before it is destroyed, executor and port must have stopped calling.
class ShardServer {
 public:
  // Rows x draws of a part. A part delays sampling, but in smaller parts threads would mostly wait for each other.
  static constexpr int64_t kUnitPasses = 1 << 13;
  // An evaluation's part pauses after kPartTime, or after kLeastPartTime if a prediction waits.
  static constexpr absl::Duration kPartTime = absl::Milliseconds(10), kLeastPartTime = absl::Milliseconds(2);

  ShardServer(PredictorFactory factory, DrawCache* draws, InputCache* inputs, Executor* executor, const Clock* clock,
              RuntimeObserver* observer);

  // Called when a shard is ready to run. Set once, before any other call.
  void SetListener(std::function<void()> on_ready) { on_ready_ = std::move(on_ready); }

  // `done` runs once, on the executor. Corrupt segments are left out and named in the result. RESOURCE_EXHAUSTED: the
  // queue is full. CANCELLED: only after Cancel or CancelAll. NOT_FOUND, UNAVAILABLE, DEADLINE_EXCEEDED: draws or data
  // could not be fetched. INVALID_ARGUMENT: inputs do not fit the plan, or the requested results cannot be combined.
  void Submit(ShardRequest request, Done<ShardResult> done);

  // A running shard ends after its current part. Unknown ids are ignored: the shard may just have been answered.
  void Cancel(uint64_t shard_id);
  void CancelAll();

  bool ready() const;
  // The first status that reported a lost device; OK if none did. Only for the device loop's thread.
  const absl::Status& device_fault() const { return device_fault_; }

  enum class Kind { kPrediction, kEvaluation };  // kEvaluation: reads rows of a data set
  // Runs a part of the first ready shard whose kind `may` accepts: at least one chain and kind and at most kUnitPasses;
  // of an evaluation for kPartTime; or a part of a flatness. Shards run in the order in which they became ready, with
  // two exceptions. After each part of an evaluation, the predictions that are ready then run first, each to its end.
  // So a prediction waits for at most one part of an evaluation, and an evaluation gets a part between groups of
  // predictions. And tenants take turns, by rows x draws: a prediction goes before those of tenants who are ahead, also
  // before one that runs, which pauses after the draw that it is at. Returns the shard's kind; nullopt if none is
  // ready.
  std::optional<Kind> ServeOne(const std::function<bool(Kind)>& may = [](Kind) { return true; });

 private:
  struct Shard;

  void LoadMore(const std::shared_ptr<Shard>& shard);
  void LoadDataset(const std::shared_ptr<Shard>& shard);
  void LoadModule(const std::shared_ptr<Shard>& shard);
  void OnLoaded(const std::shared_ptr<Shard>& shard, absl::Status status);
  void Enqueue(const std::shared_ptr<Shard>& shard) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An unfinished evaluation shard lets all ready predictions go first. A flatness, which takes long, also lets all
  // other shards go first.
  void YieldTurn(const std::shared_ptr<Shard>& shard);
  absl::Status RunUnit(Shard* shard);
  absl::Status StartUnit(Shard* shard);
  void SeeWhoWaits() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MeasureFlatness(Shard* shard);
  absl::StatusOr<Predictor*> PredictorFor(const Shard& shard);
  void LogEnd(const Shard& shard, const absl::Status& status) const;
  void Finish(const std::shared_ptr<Shard>& shard, absl::StatusOr<ShardResult> result);

  const PredictorFactory factory_;
  DrawCache* const draws_;
  InputCache* const inputs_;
  Executor* const executor_;
  const Clock* const clock_;
  RuntimeObserver* const observer_;
  std::function<void()> on_ready_ = [] {};

  mutable Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Shard>> shards_ CHAINFLEET_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Shard>> ready_ CHAINFLEET_GUARDED_BY(mutex_);
  TenantTurns turns_ CHAINFLEET_GUARDED_BY(mutex_);
  std::atomic<const Shard*> next_prediction_ = nullptr;  // the first one in `ready_`, perhaps running

  absl::Status device_fault_;
  // Networks by job, most recently used first. Only the device loop's thread uses them.
  std::list<std::pair<std::string, std::unique_ptr<Predictor>>> predictors_;
};

}  // namespace chainfleet
