// The chains that this worker holds. The session (leases, orders), the device loop (steps) and the uploader (commits)
// share them; they run on different threads and never wait for each other here.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mutex.h"
#include "core/domain/worker_protocol.h"
#include "worker/runtime/session/lease_deadline.h"

namespace chainfleet {

struct LeaseRef {
  ChainId chain;
  int64_t epoch = 0;
  auto operator<=>(const LeaseRef&) const = default;
};

// A grant with the store it belongs to (part of the names of its objects).
struct LeasedChain {
  Grant grant;
  std::string store_incarnation;
  LeaseRef lease() const { return {grant.chain, grant.lease_epoch}; }
};

// The permissions that the device loop has for a chain at a step boundary.
struct Standing {
  bool held = false;       // false: fenced, dropped or superseded; forget its state
  bool may_step = false;   // the lease is good; if not, keep the state and wait
  bool hand_back = false;  // commit what there is with ends_as PENDING
};

// Thread-safe; methods take one short lock and do no I/O. Listeners are called outside it.
//
// A chain's life: Add (new) -> TakeNew (running) -> MarkEnding -> End | Release | Drop. The epoch of an ended chain is
// kept until the coordinator has certainly seen the end, so that a grant that was sent before is not accepted again.
class HeldChains {
 public:
  // `hung_step_floor`: the least time without a step after which a chain counts as hung.
  explicit HeldChains(const Clock* clock, absl::Duration hung_step_floor = limits::kHungGpuStepFloor)
      : clock_(clock), hung_step_floor_(hung_step_floor) {}

  // `on_device_work`: a chain arrived, left, was renewed or must be handed back. `on_change`: the coordinator should
  // hear of a release or a free slot soon. Both set once, before any other call.
  void SetListeners(std::function<void()> on_device_work, std::function<void()> on_change);

  // --- The session.

  // kNew: held from now on; a held chain of a lower epoch is dropped. kRepeat: held under this epoch already; the lease
  // is not extended. kStale: ended here already, or a higher epoch is held.
  enum class Added { kNew, kRepeat, kStale };
  Added Add(LeasedChain chain, LeaseDeadline deadline);
  void Renew(const LeaseRef& lease, LeaseDeadline deadline);
  void OrderHandBack(const LeaseRef& lease);
  void OrderHandBackAll();

  // The state for one Synchronize, numbered from 1: held and released chains.
  struct Report {
    uint64_t number = 0;
    std::vector<HeldChain> chains;
    std::vector<ReleasedChain> released;
  };
  Report MakeReport();
  // The coordinator answered report `number`: releases in it need no repeat.
  void Acknowledge(uint64_t number);

  // Releases as HUNG every chain the device loop has not visited for its bound, and returns them. After a running
  // chain of a module was dropped, usually because its job was cancelled, the loop must return within a second or twice
  // its usual step: the module's code may never end, and that may be the reason for the cancel.
  std::vector<LeaseRef> ReleaseHung();
  // The time by which the loop must return after such a drop; nullopt if nothing was dropped since it last returned.
  std::optional<absl::Duration> loop_due() const;
  // The device is lost for this process: every chain is handed back as hung, no grant is accepted, and the process is
  // stuck.
  void LoseDevice(const std::string& why);
  // False from a hung release until the device loop returns; the worker offers no slots during that time.
  bool device_responds() const;
  // True if the device loop is stuck and the coordinator has every chain back: the process should end.
  bool stuck() const;

  // True if no chain is held and every release was reported.
  bool quiet() const;
  int num_chains() const;

  // --- The device loop.

  std::vector<LeasedChain> TakeNew();
  // Returns one standing per lease, and marks each chain as alive: a chain not seen for 20 times the `usual_step`, and
  // for at least `hung_step_floor`, counts as hung.
  std::vector<Standing> Visit(const std::vector<LeaseRef>& leases, absl::Duration usual_step);
  void Stepped(const LeaseRef& lease, int64_t step, const ChainStats& stats);
  // The uploader has the chain's last bytes: the device loop visits it no more.
  void MarkEnding(const LeaseRef& lease);

  // --- Anyone.

  bool Holds(const LeaseRef& lease) const;
  // The last commit under this lease was accepted.
  void End(const LeaseRef& lease);
  // Hands the chain back without a commit; reported at the next Synchronize.
  void Release(const LeaseRef& lease, ReleasedChain::Why why, const std::string& reason);
  // Drops a lost chain: fenced, cancelled, or of another store. The coordinator knows it. False if it was not held.
  bool Drop(const LeaseRef& lease);
  std::vector<LeaseRef> DropAll();

 private:
  enum class Phase { kNew, kRunning, kEnding };
  struct Record {
    LeasedChain chain;
    LeaseDeadline deadline;
    Phase phase = Phase::kNew;
    bool hand_back = false;
    int64_t step = 0;
    ChainStats stats;
    absl::Duration visited_at;
    absl::Duration usual_step;
  };
  struct Ended {
    int64_t epoch = 0;
    uint64_t report = 0;  // the last report made before it ended
  };
  struct Told {
    ReleasedChain release;
    uint64_t report = 0;
  };

  absl::Duration HungAfter(const Record& record) const;
  Record* Find(const LeaseRef& lease) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Erase(const LeaseRef& lease) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseReleased(const LeaseRef& lease, ReleasedChain::Why why, const std::string& reason)
      CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  const absl::Duration hung_step_floor_;
  std::function<void()> on_device_work_ = [] {};
  std::function<void()> on_change_ = [] {};
  mutable Mutex mutex_;
  std::map<ChainId, Record> records_ CHAINFLEET_GUARDED_BY(mutex_);
  std::map<ChainId, Ended> ended_ CHAINFLEET_GUARDED_BY(mutex_);
  std::vector<Told> released_ CHAINFLEET_GUARDED_BY(mutex_);
  uint64_t reports_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  bool hung_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  std::string lost_ CHAINFLEET_GUARDED_BY(mutex_);  // why the device is lost; empty: it is not lost
  std::optional<absl::Duration> loop_due_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
