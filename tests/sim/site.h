// The environment of a simulated run's processes, which outlives each of them: time, the one loop, disk and stores.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/store/state_store/state_store.h"
#include "server/control/control_observer.h"
#include "tests/sim/dice.h"
#include "tests/sim/history.h"
#include "tests/support/fake_clock.h"
#include "tests/support/forgetful_disk.h"
#include "tests/support/manual_executor.h"
#include "tests/support/memory_blob_store.h"

namespace chainfleet {

// The present faults of the stores.
struct StoreFaults {
  bool state_full = false;  // no change is written
  bool bucket_away = false;
  // The fault of the next commit of changes, once. kUnknown: the coordinator cannot tell whether the commit happened.
  enum class NextCommit { kNothing, kDieBefore, kDieAfter, kUnknownBefore, kUnknownAfter } next_commit{};
  // The number of disk changes until the process dies; 0: it does not die.
  int64_t die_at_disk_change = 0;
};

// For one thread. Members are destroyed in the order that their users need.
struct Site {
  using OpenState = std::function<std::unique_ptr<StateStore>()>;
  // `open`: opens the run's one database and takes it over. `trace`: gets a line for each event; empty: no
  // trace.
  Site(uint64_t seed, OpenState open, std::function<void(const std::string&)> trace_in)
      : dice(seed),
        loop(&time, seed),
        disk("/data", seed),
        open_state(std::move(open)),
        reader(open_state()),
        trace(std::move(trace_in)) {}

  void Note(const std::string& what) {
    if (trace) trace(absl::FormatDuration(time.Monotonic() - absl::Hours(1)) + "  " + what);
  }

  // Marks where a real process would wait for a store: sometimes other processes run meanwhile.
  void Yield() {
    if (yielding || !dice.OneIn(4)) return;
    yielding = true;
    for (int64_t i = dice.Between(1, 4); i > 0 && loop.RunOne(); --i) {
    }
    yielding = false;
  }

  Dice dice;
  FakeClock time;
  ManualExecutor loop;
  History history;
  ForgetfulDisk disk;
  MemoryBlobStore bucket;
  const OpenState open_state;
  // Only for reading, by the checks: opened before any coordinator.
  const std::unique_ptr<StateStore> reader;
  StoreFaults faults;

  // Settings that are fixed for the run.
  bool objects_in_bucket = false;  // in a bucket, as in S3; else on the disk
  absl::Duration lease_ttl = absl::Seconds(15);
  absl::Duration collect_every = absl::Seconds(20);
  absl::Duration longest_call = absl::Seconds(30);  // longest call that reads draws

  // Counts the events of the coordinators.
  struct Orders final : ControlObserver {
    void OnPreempt(const ChainId&) override { ++preempted; }
    int64_t preempted = 0;
  } orders;

  std::function<void(const std::string&)> trace;
  int64_t replayed = 0;                     // replayed commits
  std::map<std::string, int64_t> refusals;  // refused commits, objects and coordinators, by reason
  bool power_was_lost = false;
  bool yielding = false;
};

}  // namespace chainfleet
