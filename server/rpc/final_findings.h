// The findings of an ended job: its diagnostics, the last statistics of its chains and their traces. They are kept in
// the state store, so that a restart or another leader shows the same. The traces of a job that runs are kept, too.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/mutex.h"
#include "core/store/state_store/state_store.h"
#include "server/control/dispatcher.h"
#include "server/control/state_writer.h"
#include "server/control/trace_table.h"

namespace chainfleet {

// Thread-safe. The arguments outlive this object and the tasks that it leaves on the executor.
class FinalFindings {
 public:
  static constexpr int64_t kMostRunningTraceBytes = 16 * limits::kMiB;

  FinalFindings(Executor* executor, StateStore* store, TraceTable* traces)
      : executor_(executor), store_(store), traces_(traces) {}

  // For DispatcherOptions::on_job_end: stores the job's findings once its traces are settled.
  void OnJobEnd(const JobView& job, KeepFindings keep);

  // Stores the traces of a job that runs, within limits::kTraceBytesPerSecond, unless they take more than
  // kMostRunningTraceBytes. `now`: monotonic.
  void KeepTraces(const std::string& job, absl::Duration now, StateWriter* writer);

  // Adds the stored traces of a job that runs to the table, except those of chains that diverged or failed. `states`:
  // of its chains by index. Returns the bytes read. REQUIRES: none of its commits was accepted yet. Blocks. DATA_LOSS;
  // errors of the store.
  absl::StatusOr<int64_t> RestoreTraces(const std::string& job, const std::vector<ChainState>& states,
                                        absl::Duration now);

  // Runs `kept` on the executor once no findings of the job are being stored; at once if none are.
  void WhenKept(const std::string& job, std::function<void()> kept);

  // Renders the job with its chains and diagnostics. The findings of an ended job come from the store, or from memory
  // if the job ended under an older release. May block; returns the store's errors.
  absl::StatusOr<v1::Job> Render(const JobView& job) const;

  // As TraceTable::TracesOf, from the store if the job has ended. May block.
  absl::StatusOr<v1::Traces> TracesOf(const JobView& job, const std::string& quantity) const;

 private:
  // Waits with the next traces of the job until limits::kTraceBytesPerSecond have room for `bytes`.
  void DelayTraces(const std::string& job, absl::Duration now, size_t bytes);
  void Keep(const JobView& job, const KeepFindings& keep);
  void TellKept(const std::string& job);

  Executor* const executor_;
  StateStore* const store_;
  TraceTable* const traces_;
  Mutex mutex_;
  // callbacks by ended job
  std::map<std::string, std::vector<std::function<void()>>> waiting_ CHAINFLEET_GUARDED_BY(mutex_);
  std::map<std::string, absl::Duration> traces_due_ CHAINFLEET_GUARDED_BY(mutex_);  // time of the next ones, by job
};

}  // namespace chainfleet
