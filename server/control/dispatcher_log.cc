#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/control/dispatcher_impl.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kSilenceInterval = absl::Seconds(1);
constexpr absl::Duration kForgetWorkerAfter = absl::Minutes(10);

}  // namespace

void Dispatcher::Core::Note(LogLevel level, const std::string& message, const ChainRow& row,
                            std::vector<LogField> more) {
  std::vector<LogField> fields = {{"chain", row.id.index}, {"lease_epoch", row.lease_epoch}, {"worker", row.worker}};
  fields.insert(fields.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  NoteJob(level, message, row.id.job, std::move(fields));
}

void Dispatcher::Core::NoteJob(LogLevel level, const std::string& message, const std::string& job,
                               std::vector<LogField> more) {
  more.insert(more.begin(), {"job", job});
  events->Add(level, message, more);
  if (IsLogged(level)) log_lines.push_back({level, message, std::move(more)});
}

// Notes each reason once until the chain's next commit: a worker repeats its commits while the disk is full.
void Dispatcher::Core::NoteCommit(const ChainRow& by, const absl::Status& status) {
  ChainEntry* chain = jobs.Find(by.id);
  if (chain == nullptr) return;
  const std::string refused = status.ok() ? "" : absl::StrCat(by.lease_epoch, " ", ReasonOf(status));
  if (refused == std::exchange(chain->refused, refused) || status.ok()) return;
  Note(LogLevel::kWarning, "commit rejected", by, {{"reason", status.message()}});
}

// Logs each silence once. The next call or scrape notices a silent worker that has no chains.
void Dispatcher::Core::NoteSilentWorkers() {
  if (now < next_silence_check) return;
  next_silence_check = now + kSilenceInterval;
  for (WorkerEntry* worker : fleet.NewlySilent(now - options.lease_ttl - options.lease_grace)) {
    const std::vector<LogField> fields = {{"worker", worker->id},
                                          {"host", worker->host},
                                          {"chains", leases.NumOfWorker(worker->id)},
                                          {"silent_s", absl::ToDoubleSeconds(now - worker->last_sync)}};
    if (worker->draining) {
      log_lines.push_back({LogLevel::kInfo, "worker left after its drain", fields});
    } else {
      observer->OnWorkerSilent();
      log_lines.push_back({LogLevel::kWarning, "worker fell silent", fields});
    }
  }
  // A call that old was held before this process was stopped, so its worker may still be alive.
  fleet.ForgetSilent(now - kForgetWorkerAfter, [this](const std::string& worker) { return held.contains(worker); });
}

}  // namespace chainfleet
