// The worker's side of Synchronize: its whole state up, grants and orders down, again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/backoff.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "worker/runtime/session/coordinator_port.h"
#include "worker/runtime/session/draw_uploader.h"
#include "worker/runtime/session/held_chains.h"

namespace chainfleet {

// Thread-safe. One call is in flight at a time, and a second while the server may be holding the first although there
// is news for it, which it answers then. Each carries the next seq, and a reply that was overtaken is ignored. It never
// waits for a step, an fsync or an upload. It does not give up: an unreachable server is tried with backoff for ever,
// and the chains stop by themselves when their leases run out. Before it is destroyed, executor and port must have
// stopped calling.
class WorkerSession {
 public:
  struct Options {
    std::string worker;       // stable id
    std::string incarnation;  // random per process
    std::string host, metrics_address;
    std::vector<DeviceReport> devices;
    RngKey jitter_key;
  };
  WorkerSession(Options options, CoordinatorPort* port, HeldChains* held, DrawUploader* uploader, Executor* executor,
                const Clock* clock);

  // Called when status() or drained() may have changed. Set once, before Start.
  void SetListener(std::function<void()> on_change) { on_change_ = std::move(on_change); }

  // The first Synchronize, soon.
  void Start();

  // The next Synchronize comes now, or soon beside the one in flight: a chain ended or was released.
  void Wake();

  // Hands every chain back and takes no more; drained() once the coordinator has them all. An operator's order in a
  // reply hands back alike, but is no reason to end: drained() stays false.
  void Drain();
  bool drained() const;
  // A step or pass does not end; every chain is handed back, and the process should end. May come true in any reply.
  bool stuck() const { return held_->stuck(); }

  // Not OK: the server refuses this worker for good (VERSION_MISMATCH and the like); nothing is held any more.
  absl::Status status() const;

  // Whether the last call got through, for the exit status of a drain that did not finish.
  bool connected() const;

 private:
  void RunOnce();
  void ScheduleAfter(absl::Duration delay) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnReply(const HeldChains::Report& report, absl::Duration sent_at, const absl::StatusOr<SynchronizeReply>& reply);
  void OnFailure(uint64_t call, const absl::Status& status);
  // False if a later call is in flight, which sees to the next.
  bool EndCall(uint64_t call) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False if the reply is of a deposed coordinator.
  bool TakeIdentity(const SynchronizeReply& reply);
  void TakeDrainOrder();
  void ApplyLeases(const HeldChains::Report& report, absl::Duration sent_at, const SynchronizeReply& reply);
  // True if a chain was taken that the coordinator must hear of.
  bool ApplyGrants(absl::Duration sent_at, const SynchronizeReply& reply);
  void DropAll();
  // Whoever wishes it: it takes no chain.
  bool drains() const CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return draining_ || told_to_drain_; }

  const Options options_;
  CoordinatorPort* const port_;
  HeldChains* const held_;
  DrawUploader* const uploader_;
  Executor* const executor_;
  const Clock* const clock_;
  std::function<void()> on_change_ = [] {};

  mutable Mutex mutex_;
  Backoff backoff_ CHAINFLEET_GUARDED_BY(mutex_);
  // Of the newest coordinator seen, by the store's incarnation: an older one's reply is of one that leads no more, one
  // of a store that was left is taken only if a coordinator has begun on it anew.
  std::map<std::string, int64_t> generations_ CHAINFLEET_GUARDED_BY(mutex_);
  std::string store_incarnation_ CHAINFLEET_GUARDED_BY(mutex_);
  absl::Duration lease_ttl_ CHAINFLEET_GUARDED_BY(mutex_) = limits::kLeaseTtl;
  uint64_t timer_ CHAINFLEET_GUARDED_BY(mutex_) = 0;  // of the one that counts; older ones find another number
  int in_flight_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  uint64_t newest_call_ CHAINFLEET_GUARDED_BY(mutex_) = 0;    // sent, by the number of its report
  uint64_t newest_reply_ CHAINFLEET_GUARDED_BY(mutex_) = 0;   // taken
  bool again_ CHAINFLEET_GUARDED_BY(mutex_) = false;          // there is news since the newest call
  bool draining_ CHAINFLEET_GUARDED_BY(mutex_) = false;       // the process is to end
  bool told_to_drain_ CHAINFLEET_GUARDED_BY(mutex_) = false;  // and stays
  bool connected_ CHAINFLEET_GUARDED_BY(mutex_) = true;
  absl::Status status_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
