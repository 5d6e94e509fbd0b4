// What an ended job leaves to be looked at: its diagnostics, its chains' last statistics and their traces. Kept in the
// state store, so that a restart or another leader shows the same.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "core/store/state_store/state_store.h"
#include "server/control/dispatcher.h"
#include "server/control/trace_table.h"

namespace chainfleet {

// Thread-safe. What it is made over outlives it and the tasks that it leaves on the executor.
class FinalFindings {
 public:
  FinalFindings(Executor* executor, StateStore* store, TraceTable* traces)
      : executor_(executor), store_(store), traces_(traces) {}

  // For DispatcherOptions::on_job_end: keeps what is known of the job once its traces are settled.
  void OnJobEnd(const JobView& job, KeepFindings keep);

  // Runs `kept` on the executor once nothing of the job is on its way to the store: soon, if nothing is.
  void WhenKept(const std::string& job, std::function<void()> kept);

  // The job with its chains and diagnostics; of an ended one as the store has them, and as memory has them if it ended
  // under an older release. May block; the store's errors.
  absl::StatusOr<v1::Job> Render(JobView job) const;

  // Likewise. As TraceTable::TracesOf.
  absl::StatusOr<v1::Traces> TracesOf(const JobView& job, const std::string& quantity) const;

 private:
  void Keep(const JobView& job, const KeepFindings& keep);
  void TellKept(const std::string& job);

  Executor* const executor_;
  StateStore* const store_;
  TraceTable* const traces_;
  Mutex mutex_;
  std::map<std::string, std::vector<std::function<void()>>> waiting_ CHAINFLEET_GUARDED_BY(mutex_);  // of ended jobs
};

}  // namespace chainfleet
