// Who works on which chain until when. Plain data: no lock, clock or I/O; times are of the monotonic clock.
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

namespace chainfleet {

// Until a chain that lacks an object of the store looks for it again.
inline constexpr absl::Duration kStoreFaultDelay = absl::Seconds(10);

// How a lease is to end before its time.
struct LeaseEnd {
  bool ordered = false;     // by the server: costs no attempt
  bool given_back = false;  // the worker has let go of the chain
  std::string reason;
  bool crash = false;        // the worker's process is gone, or answers no more
  bool hopeless = false;     // the chain's job is wrong
  bool store_fault = false;  // costs no attempt
};

struct Lease {
  ChainId chain;
  int64_t epoch = 0;
  std::string worker, incarnation;
  absl::Duration ends;                 // term and grace
  int64_t bytes = 0;                   // memory of the chain, estimated or measured: the larger
  std::string tenant;                  // of the chain's job
  double devices = 0;                  // the chain's part of its worker's; 0 until that is known after a restart
  bool confirmed = false;              // its grant is committed
  bool listed = false;                 // the worker has said that it holds the chain
  bool delivered = false;              // the grant was in a reply
  bool in_company = false;             // some other chain was leased to the same process meanwhile
  bool told_to_stop = false;           // the worker was asked to hand the chain back
  bool preempted = false;              // a chain of a higher tier waits for its place
  std::shared_ptr<const Grant> grant;  // until the worker lists it; none after a restart of the server
  std::optional<LeaseEnd> ending;

  // The worker cannot know of it yet.
  bool unseen() const { return !listed && !delivered && (grant != nullptr || !confirmed); }
};

// Not thread-safe. Pointers stay valid until the lease ends.
class LeaseTable {
 public:
  // Replaces an older lease of the chain.
  Lease* Put(Lease lease);
  Lease* Find(const ChainId& chain);
  void Extend(Lease* lease, absl::Duration ends);  // never shortens
  void EndAt(Lease* lease, absl::Duration time, LeaseEnd ending);
  void Remove(const ChainId& chain);

  // Of all incarnations, by chain.
  std::vector<Lease*> OfWorker(const std::string& worker);
  int32_t NumOfWorker(const std::string& worker) const;
  int64_t BytesOfWorker(const std::string& worker) const;

  // Leases that end by `now`, earliest first. Each is returned once: again only after LookAgain or with a new end.
  std::vector<Lease*> TakeEnded(absl::Duration now);
  // A change of the chain is no longer in flight.
  void LookAgain(const ChainId& chain);
  std::optional<absl::Duration> NextEnd() const;

 private:
  void Move(Lease* lease, absl::Duration ends);

  std::map<ChainId, Lease> leases_;
  std::map<std::string, std::set<ChainId>> of_worker_;
  std::set<std::pair<absl::Duration, ChainId>> by_end_;
};

}  // namespace chainfleet
