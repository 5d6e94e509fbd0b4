// Expires draws that are too many or too old by their job's retention. Their records become tombstones at once. Their
// objects become garbage as soon as no call can still read them.
//
// The age of draws is wall time, as users expect. The time for which objects stay is monotonic and kept in memory:
// after a restart it starts again for all waiting objects.
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

// Returns the first indices of those `records` whose draws have all expired. `records` belong to one chain that has
// committed `num_draws`. Tombstones are skipped.
std::vector<int64_t> ChooseExpired(const RetentionSpec& retention, int64_t num_draws,
                                   std::span<const SegmentRecord> records, absl::Time now);

// Thread-safe. The constructor's arguments outlive the executor's last task. Memory: a few numbers for each chain of a
// job with a retention, and for each pass within `longest_call`.
class RetentionKeeper {
 public:
  // No call reads draws for longer than `longest_call` after it has looked them up. `released` runs when objects have
  // become garbage, so that they do not wait for the collector's next pass.
  RetentionKeeper(const Clock* clock, Executor* executor, StateStore* store, Coordinator* coordinator,
                  absl::Duration longest_call, std::function<void()> released);

  // Runs a pass every `interval`, on the executor, until this object is destroyed.
  void Start(absl::Duration interval);

  struct Pass {
    int64_t expired = 0, released = 0;  // segments
  };
  // Runs one pass; blocks. Takes a bounded number of segments of each chain and leaves the others to the next pass.
  // Errors of the store.
  absl::StatusOr<Pass> Run();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace chainfleet
