// Lets the draws go that a job's retention says are too many or too old: their records become tombstones
// at once, their objects garbage when no call can be reading them any more.
//
// When draws were committed is told by the calendar, as users mean it; how long their objects stay by the monotonic
// clock, in memory: after a restart all that waits does so for a whole term again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/domain/retention_spec.h"
#include "core/store/state_store/state_store.h"
#include "server/control/coordinator.h"

namespace chainfleet {

// The first indices of those of `records` whose draws may all go. `records` are of one chain that has committed
// `num_draws`; tombstones among them have gone.
std::vector<int64_t> ChooseExpired(const RetentionSpec& retention, int64_t num_draws,
                                   std::span<const SegmentRecord> records, absl::Time now);

// Thread-safe. What it is given outlives the executor's last task. Memory: a few numbers for each chain of a job that
// has a retention, and for each pass within `longest_call`.
class RetentionKeeper {
 public:
  // No call reads draws for longer than `longest_call` after it has looked up which; `released` runs when objects have
  // become garbage, so that nobody waits for the collector's next round.
  RetentionKeeper(const Clock* clock, Executor* executor, StateStore* store, Coordinator* coordinator,
                  absl::Duration longest_call, std::function<void()> released);

  // A pass every `interval`, on the executor, until this is destroyed.
  void Start(absl::Duration interval);

  struct Pass {
    int64_t expired = 0, released = 0;  // segments
  };
  // One pass, here and now; blocks. Of a chain it takes at most a bounded number of segments, the rest next time.
  // Errors of the store.
  absl::StatusOr<Pass> Run();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace chainfleet
