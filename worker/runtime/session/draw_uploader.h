// Uploads draws and resume points to the store: exactly once, in order, with one commit in flight per chain.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/backoff.h"
#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/mutex.h"
#include "worker/runtime/session/coordinator_port.h"
#include "worker/runtime/session/held_chains.h"
#include "worker/runtime/session/progress_upload.h"
#include "worker/runtime/session/runtime_observer.h"

namespace chainfleet {

// Thread-safe. Bounded in bytes: a full queue refuses uploads and the runner waits, so nothing is dropped.
//
// For each chain: puts the segment's object, puts the resume point's object unless it is inline, then commits.
// UNAVAILABLE, DEADLINE_EXCEEDED and RESOURCE_EXHAUSTED (the store or a queue of the server is full) are retried with
// backoff as long as the chain is held: a commit after the lease's end is still accepted if the chain was not granted
// again. BLOB_MISSING and DATA_LOSS put the object again, limits::kUploadAttempts times. LEASE_FENCED, CHAIN_FINAL and
// PATH_CONFLICT drop the chain and its queued uploads. Other errors release it as FAILED.
//
// Before it is destroyed, executor and port must have stopped calling.
class DrawUploader {
 public:
  struct Options {
    Author author;
    std::string incarnation;
    int64_t capacity_bytes = limits::kUploadQueueBytes;
    RngKey jitter_key;
  };
  DrawUploader(Options options, CoordinatorPort* port, HeldChains* held, Executor* executor, RuntimeObserver* observer);

  // Called after a commit made room. Set once, before any other call.
  void SetRoomListener(std::function<void()> on_room) { on_room_ = std::move(on_room); }

  // Called before the first Offer under a lease. `parameters` is the layout of its draws.
  void Open(const LeasedChain& chain, std::vector<ParameterShape> parameters);

  // True: the upload was accepted (moved from), or the chain is no longer open here. False: there is no room and
  // nothing changed; offer it again. An empty queue accepts an upload of any size.
  bool Offer(const LeaseRef& lease, ProgressUpload* upload);

  // Releases the lease once all its queued uploads are committed.
  void ReleaseAfter(const LeaseRef& lease, ReleasedChain::Why why, const std::string& reason);

  // Forgets the chain and its queued uploads.
  void Drop(const LeaseRef& lease);

  int64_t queued_bytes() const;

 private:
  struct Flight;  // one upload in progress

  struct Lane {
    uint64_t number = 0;  // a lease that is dropped and granted again after a restore of the store gets a new lane
    SegmentPlace place;   // place of the next segment
    std::deque<ProgressUpload> queue;
    bool busy = false;  // an upload is in flight
    int64_t bytes = 0;  // queued and in flight
    std::optional<ReleasedChain> release;
  };

  void StartNext(const LeaseRef& lease);
  void Send(const std::shared_ptr<Flight>& flight);
  void OnAnswer(const std::shared_ptr<Flight>& flight, const absl::Status& status);
  void OnFailure(const std::shared_ptr<Flight>& flight, const absl::Status& status);
  void SendAgain(const std::shared_ptr<Flight>& flight);
  void NoteOutage(const absl::Status& status);
  void NoteSuccess();
  void OnCommitted(const std::shared_ptr<Flight>& flight);
  Lane* LaneOf(const Flight& flight) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsOpen(const Flight& flight);

  const Options options_;
  CoordinatorPort* const port_;
  HeldChains* const held_;
  Executor* const executor_;
  RuntimeObserver* const observer_;
  std::function<void()> on_room_ = [] {};

  mutable Mutex mutex_;
  std::map<LeaseRef, Lane> lanes_ CHAINFLEET_GUARDED_BY(mutex_);
  uint64_t num_lanes_ CHAINFLEET_GUARDED_BY(mutex_) = 0;  // ever opened
  int64_t queued_bytes_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  bool store_full_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  bool server_away_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace chainfleet
