// The worker's side of Synchronize: each call sends the worker's whole state and returns grants and orders.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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

// Thread-safe. One call is in flight at a time. If there is news while the server holds that call, a second one
// follows, and the server then answers the first. Each call carries the next seq; a reply older than the newest one is
// ignored. The session never waits for a step, an fsync or an upload. It retries an unreachable server with backoff and
// no limit; the chains stop by themselves when their leases expire. Before it is destroyed, executor and port must have
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

  // Schedules the first Synchronize.
  void Start();

  // Sends the next Synchronize now, or soon if one is in flight. Call when a chain ended or was released.
  void Wake();

  // Hands every chain back and takes no more. drained() once the coordinator has them all and knows of the drain, so
  // that it grants none again, or cannot be reached. An operator's order in a reply also hands all chains back, but
  // does not end the process: drained() stays false.
  void Drain();
  bool drained() const;
  // True if a step or prediction does not end: every chain was handed back, and the process should end.
  bool stuck() const { return held_->stuck(); }

  // Not OK: the server refuses this worker permanently (for example VERSION_MISMATCH); no chain is held.
  absl::Status status() const;

  // True if the last call succeeded; decides the exit status of a drain that did not finish.
  bool connected() const;

 private:
  void RunOnce();
  void ScheduleAfter(absl::Duration delay) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnReply(const HeldChains::Report& report, absl::Duration sent_at, const absl::StatusOr<SynchronizeReply>& reply);
  void OnFailure(uint64_t call, const absl::Status& status);
  // False if a later call is in flight; that call schedules the next one.
  bool EndCall(uint64_t call) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False if the reply comes from a coordinator that no longer leads.
  bool TakeIdentity(const SynchronizeReply& reply);
  void TakeDrainOrder();
  void ApplyLeases(const HeldChains::Report& report, absl::Duration sent_at, const SynchronizeReply& reply);
  // True if a chain was accepted that the coordinator must hear of.
  bool ApplyGrants(absl::Duration sent_at, const SynchronizeReply& reply);
  void DropAll();
  // True if the process or an operator drains this worker: it accepts no chain.
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
  // Generation of the newest coordinator seen, by the store's incarnation. A reply of an older generation comes from a
  // coordinator that no longer leads. A reply of an earlier store is accepted only if its generation is newer than
  // seen.
  std::map<std::string, int64_t> generations_ CHAINFLEET_GUARDED_BY(mutex_);
  std::string store_incarnation_ CHAINFLEET_GUARDED_BY(mutex_);
  absl::Duration lease_ttl_ CHAINFLEET_GUARDED_BY(mutex_) = limits::kLeaseTtl;
  uint64_t timer_ CHAINFLEET_GUARDED_BY(mutex_) = 0;  // number of the current timer; older timers find another number
  int in_flight_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  uint64_t newest_call_ CHAINFLEET_GUARDED_BY(mutex_) = 0;    // number of the newest report sent
  uint64_t newest_reply_ CHAINFLEET_GUARDED_BY(mutex_) = 0;   // number of the newest reply accepted
  bool again_ CHAINFLEET_GUARDED_BY(mutex_) = false;          // there is news since the newest call
  bool draining_ CHAINFLEET_GUARDED_BY(mutex_) = false;       // the process is to end
  bool told_to_drain_ CHAINFLEET_GUARDED_BY(mutex_) = false;  // an operator drains the worker; the process goes on
  // Number of the first call that said so. Until it is answered, the server may still grant chains.
  std::optional<uint64_t> first_draining_call_ CHAINFLEET_GUARDED_BY(mutex_);
  bool connected_ CHAINFLEET_GUARDED_BY(mutex_) = true;
  absl::Status status_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
