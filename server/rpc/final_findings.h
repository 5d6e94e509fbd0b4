// The findings of an ended job: its diagnostics, the last statistics of its chains and their traces. They are kept in
// the state store, so that a restart or another leader shows the same. The traces of a job that runs are kept, too. If
// draws are encrypted at rest, so are all of these: values of theta are among them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/mutex.h"
#include "core/store/blob_store/job_cipher.h"
#include "core/store/state_store/state_store.h"
#include "server/control/dispatcher.h"
#include "server/control/state_writer.h"
#include "server/control/trace_table.h"

namespace chainfleet {

// Thread-safe. The arguments outlive this object and the tasks that it leaves on the executor.
class FinalFindings {
 public:
  static constexpr int64_t kMostRunningTraceBytes = 16 * limits::kMiB;

  FinalFindings(Executor* executor, StateStore* store, TraceTable* traces, JobCipher cipher = {})
      : executor_(executor), store_(store), traces_(traces), cipher_(std::move(cipher)) {}

  // For DispatcherOptions::on_job_end: stores the job's findings once its traces are settled.
  void OnJobEnd(const JobView& job, KeepFindings keep);

  // Stores the traces of a job that runs, within limits::kTraceBytesPerSecond, unless they take more than
  // kMostRunningTraceBytes. `now`: monotonic.
  void KeepTraces(const std::string& job, absl::Duration now, StateWriter* writer);

  // Adds the stored traces of a job that runs to the table, except those of chains that diverged or failed. `states`:
  // of its chains by index. Returns the bytes read. Logs traces that are damaged or whose key is missing, and returns
  // 0: they start anew. REQUIRES: none of its commits was accepted yet. Blocks. Errors of the store.
  absl::StatusOr<int64_t> RestoreTraces(const std::string& job, const std::vector<ChainState>& states,
                                        absl::Duration now);

  // Encrypts anew each part of any job that is in clear or under another key than that of its tenant now. Logs and
  // skips parts that it cannot read. REQUIRES: there are keys, and no job runs yet. Blocks. FAILED_PRECONDITION /
  // NO_DRAW_KEY: a tenant has no key. Errors of the store.
  absl::Status Renew(StateWriter* writer);

  // Runs `kept` on the executor once no findings of the job are being stored; at once if none are.
  void WhenKept(const std::string& job, std::function<void()> kept);

  // Renders the job with its chains and diagnostics. The findings of an ended job come from the store, or from memory
  // if the job ended under an older release or their key is missing. May block. DATA_LOSS; errors of the store.
  absl::StatusOr<v1::Job> Render(const JobView& job) const;

  // As TraceTable::TracesOf, from the store if the job has ended. May block. Errors of JobCipher::Decrypt.
  absl::StatusOr<v1::Traces> TracesOf(const JobView& job, const std::string& quantity) const;

 private:
  // Waits with the next traces of the job until limits::kTraceBytesPerSecond have room for `bytes`.
  void DelayTraces(const std::string& job, absl::Duration now, size_t bytes);
  void Keep(const JobView& job, const KeepFindings& keep);
  void TellKept(const std::string& job);
  // Returns the content of a part. Errors of the store and of JobCipher::Decrypt.
  absl::StatusOr<std::string> Find(const std::string& job, const std::string& part) const;
  absl::StatusOr<int64_t> AddStoredTraces(const std::string& job, const std::vector<ChainState>& states,
                                          absl::Duration now);
  absl::Status RenewPart(const FindingName& name, StateWriter* writer);
  // Logs, once for each job, that findings are left out.
  void TellLeftOut(const std::string& job, const absl::Status& error) const;

  Executor* const executor_;
  StateStore* const store_;
  TraceTable* const traces_;
  const JobCipher cipher_;
  mutable Mutex mutex_;
  // callbacks by ended job
  std::map<std::string, std::vector<std::function<void()>>> waiting_ CHAINFLEET_GUARDED_BY(mutex_);
  std::map<std::string, absl::Duration> traces_due_ CHAINFLEET_GUARDED_BY(mutex_);  // time of the next ones, by job
  mutable std::set<std::string> left_out_ CHAINFLEET_GUARDED_BY(mutex_);            // jobs of TellLeftOut
};

}  // namespace chainfleet
