// The leases: which worker works on which chain until when. Plain data: no lock, clock or I/O; times are monotonic.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/domain/worker_protocol.h"
#include "server/control/control_observer.h"

namespace chainfleet {

// The pause before a chain that lacks an object of the store tries again.
inline constexpr absl::Duration kStoreFaultDelay = absl::Seconds(10);

// The cause of a lease's early end.
struct LeaseEnd {
  LeaseOutcome outcome = LeaseOutcome::kLost;
  std::string reason;
  bool given_back = false;   // the worker no longer holds the chain
  bool store_fault = false;  // an object of the store is missing or damaged; costs no attempt

  bool crash() const { return outcome == LeaseOutcome::kLost || outcome == LeaseOutcome::kHung; }
};

inline LeaseEnd Ordered(std::string reason, bool given_back = false) {
  return {.outcome = LeaseOutcome::kOrdered, .reason = std::move(reason), .given_back = given_back};
}

// The server's knowledge about the worker and the lease. LeaseTable::Move checks every change.
enum class LeaseState {
  kGranting,    // the store is writing the grant
  kRegranting,  // as GRANTING; the worker already holds the chain and needs no grant message
  kRestored,    // committed; unknown whether the worker saw the grant: the server restarted, or the grant was a repeat
  kOffered,     // committed; no reply carried the grant
  kDelivered,   // a reply carried the grant
  kHeld,        // the worker has listed the chain
  kStopping,    // the worker was asked to hand the chain back
};

struct Lease {
  ChainId chain;
  int64_t epoch = 0;
  std::string worker, incarnation;
  absl::Duration ends;  // end of term and grace
  int64_t bytes = 0;    // memory of the chain: the larger of estimate and measurement; changed by LeaseTable::SetBytes
  std::string tenant;   // owner of the chain's job
  double devices = 0;   // the chain's share of its worker's devices; 0 until known after a restart
  LeaseState state = LeaseState::kGranting;
  bool in_company = false;             // another chain was leased to the same process meanwhile
  std::shared_ptr<const Grant> grant;  // set while OFFERED or DELIVERED
  std::optional<LeaseEnd> ending;

  bool committed() const { return state != LeaseState::kGranting && state != LeaseState::kRegranting; }
  // Returns true if the worker cannot know of the lease yet.
  bool unseen() const { return state == LeaseState::kGranting || state == LeaseState::kOffered; }
  // Returns true if the server knows that the worker got the grant.
  bool seen() const { return state >= LeaseState::kDelivered || state == LeaseState::kRegranting; }
  bool stopping() const { return state == LeaseState::kStopping; }
};

// Not thread-safe. Pointers stay valid until the lease ends.
class LeaseTable {
 public:
  // Replaces an older lease of the chain.
  Lease* Put(Lease lease);
  const Lease* Find(const ChainId& chain) const;
  Lease* Find(const ChainId& chain) { return const_cast<Lease*>(std::as_const(*this).Find(chain)); }
  // REQUIRES: lease_table.cc lists the move. The grant is dropped when the worker has listed the chain.
  static void Move(Lease* lease, LeaseState to);
  void Extend(Lease* lease, absl::Duration ends);  // never shortens
  void EndAt(Lease* lease, absl::Duration time, LeaseEnd ending);
  void SetBytes(Lease* lease, int64_t bytes);
  void Remove(const ChainId& chain);

  // Returns the leases of all incarnations, by chain.
  std::vector<Lease*> OfWorker(const std::string& worker);
  // Counts only the leases of `tenant`, if it is given.
  int32_t NumOfWorker(const std::string& worker, const std::optional<std::string>& tenant = std::nullopt) const;
  // Kept up to date by every change: reads no leases.
  int64_t BytesOfWorker(const std::string& worker) const;

  // Returns leases that end by `now`, earliest first. Each is returned once, until LookAgain or a new end.
  std::vector<Lease*> TakeEnded(absl::Duration now);
  // Call when the change of the chain is no longer in flight.
  void LookAgain(const ChainId& chain);
  std::optional<absl::Duration> NextEnd() const;

  // Returns the leases that yield to waiting chains of a higher tier. RemoveLease drops a lease from this set.
  const std::set<ChainId>& preempted() const { return preempted_; }
  void SetPreempted(std::set<ChainId> chains) { preempted_ = std::move(chains); }

 private:
  struct Held {
    std::set<ChainId> chains;
    int64_t bytes = 0;  // sum over the leases
  };
  void MoveEnd(Lease* lease, absl::Duration ends);

  std::map<ChainId, Lease> leases_;
  std::map<std::string, Held> of_worker_;
  std::set<std::pair<absl::Duration, ChainId>> by_end_;
  std::set<ChainId> preempted_;
};

}  // namespace chainfleet
