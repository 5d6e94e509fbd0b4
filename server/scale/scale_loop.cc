#include "server/scale/scale_loop.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "server/control/upkeep.h"

namespace chainfleet {
namespace {

// The state of one job, as far as this process has seen it.
struct Tracked {
  bool joined = false;    // its worker synchronized at some time
  bool live = false;      // its worker synchronizes now
  bool draining = false;  // by any order
  bool unwanted = false;  // this process ended it, so its end is no failure
  int64_t chains = 0;
  std::optional<absl::Duration> idle_since, released_at;
  std::optional<absl::Duration> stranger_since;  // since when it runs without its worker having joined
};

absl::Duration Since(const std::optional<absl::Duration>& start, absl::Duration now) {
  return start ? now - *start : absl::ZeroDuration();
}

// Updates `since`, the time since which `holds` has been true without interruption.
void Keep(bool holds, absl::Duration now, std::optional<absl::Duration>* since) {
  if (!holds) {
    since->reset();
  } else if (!*since) {
    *since = now;
  }
}

}  // namespace

struct ScaleLoop::State {
  void Pass();
  bool Worked(const char* call, const absl::Status& status);
  void NoteLost(const std::vector<ClusterJob>& jobs);
  void Track(const std::vector<ClusterJob>& jobs, const FleetDemand& fleet);
  ScaleFacts FactsOf(const std::vector<ClusterJob>& jobs, const FleetDemand& fleet);
  ScaledWorker::State StateOf(const ClusterJob& job) const;
  void GiveUp(const std::vector<ClusterJob>& jobs);
  bool GiveUpOn(const ClusterJob& job);
  void Release(const std::string& job);
  void EndOverdue(const std::vector<ClusterJob>& jobs);
  void Ask(const ScaleDecision& decision, int64_t waiting);
  void DelayNextAsk();
  void Publish(const ScaleFacts& facts, int32_t desired);

  const ScaleSettings settings;
  Scaler* const scaler;
  const std::function<FleetDemand()> demand;
  const Clock* const clock;

  // Used only by the running pass.
  absl::Duration now;
  std::map<std::string, Tracked> tracked;  // by job
  std::optional<absl::Duration> calm_since, stuck_since;
  absl::Duration next_ask = -absl::InfiniteDuration();
  int failures = 0;              // in a row, to get a worker
  std::set<std::string> broken;  // calls that failed at their last attempt
  int64_t errors = 0, lost_jobs = 0;

  mutable Mutex mutex;
  ScaleCounts counts CHAINFLEET_GUARDED_BY(mutex);
};

ScaleLoop::ScaleLoop(const ScaleSettings& settings, Scaler* scaler, std::function<FleetDemand()> demand,
                     const Clock* clock, Executor* executor)
    : state_(new State{.settings = settings, .scaler = scaler, .demand = std::move(demand), .clock = clock}),
      executor_(executor) {}

void ScaleLoop::Start() {
  RunEvery(executor_, absl::ZeroDuration(), kScaleInterval, "scaling the cluster", std::weak_ptr<State>(state_),
           [](State* state) {
             state->Pass();
             return absl::OkStatus();
           });
}

ScaleCounts ScaleLoop::counts() const {
  MutexLock lock(&state_->mutex);
  return state_->counts;
}

void ScaleLoop::State::Pass() {
  const absl::StatusOr<std::vector<ClusterJob>> jobs = scaler->List();
  now = clock->Monotonic();
  if (!Worked("list its jobs", jobs.status())) {
    MutexLock lock(&mutex);
    counts.errors = errors;
    return;
  }
  const FleetDemand fleet = demand();
  NoteLost(*jobs);
  Track(*jobs, fleet);
  GiveUp(*jobs);
  const ScaleFacts facts = FactsOf(*jobs, fleet);
  const ScaleDecision decision = DecideScale(settings, facts);
  for (const std::string& job : decision.withdraw) {
    if (Worked("withdraw a job", scaler->Withdraw(job))) tracked[job].unwanted = true;
  }
  for (const std::string& job : decision.released) Release(job);
  EndOverdue(*jobs);
  Ask(decision, facts.waiting);
  Publish(facts, decision.desired);
}

// Logs when a call starts to fail and when it works again, not at each pass.
bool ScaleLoop::State::Worked(const char* call, const absl::Status& status) {
  if (status.ok()) {
    if (broken.erase(call) > 0) Log(LogLevel::kInfo, scaler->name() + " works again", {{"call", call}});
    return true;
  }
  ++errors;
  if (broken.insert(call).second) {
    Log(LogLevel::kError, scaler->name() + " command failed, retrying; further failures are not logged",
        {{"call", call}, {"error", std::string(status.message())}});
  }
  return false;
}

// A broken node ends many jobs at once. They count as one failure.
void ScaleLoop::State::NoteLost(const std::vector<ClusterJob>& jobs) {
  std::set<std::string> listed;
  for (const ClusterJob& job : jobs) listed.insert(job.id);
  std::vector<std::string> lost;
  std::erase_if(tracked, [&](const auto& entry) {
    const auto& [id, job] = entry;
    if (listed.contains(id)) return false;
    if (!job.joined && !job.unwanted) lost.push_back(id);
    return true;
  });
  if (lost.empty()) return;
  lost_jobs += static_cast<int64_t>(lost.size());
  DelayNextAsk();
  Log(LogLevel::kWarning, scaler->name() + " jobs ended before their workers joined: see the jobs' output files",
      {{"cluster_jobs", absl::StrJoin(lost, ",")}, {"next_in", absl::FormatDuration(next_ask - now)}});
}

void ScaleLoop::State::Track(const std::vector<ClusterJob>& jobs, const FleetDemand& fleet) {
  for (const ClusterJob& job : jobs) {
    Tracked& seen = tracked[job.id];
    seen.live = seen.draining = false;
    seen.chains = 0;
    for (const WorkerView& worker : fleet.workers) {
      if (!absl::StartsWith(worker.id, job.worker_prefix)) continue;
      seen.live = true;
      seen.draining = seen.draining || worker.draining;
      seen.chains += worker.chains;
    }
    if (seen.live && !std::exchange(seen.joined, true)) failures = 0;
    const bool runs = job.state == ClusterJob::State::kRunning;
    Keep(runs && seen.chains == 0, now, &seen.idle_since);
    Keep(runs && !seen.joined, now, &seen.stranger_since);
  }
  Keep(fleet.waiting == 0, now, &calm_since);
}

ScaledWorker::State ScaleLoop::State::StateOf(const ClusterJob& job) const {
  const Tracked& seen = tracked.at(job.id);
  if (job.state == ClusterJob::State::kEnding || seen.released_at || seen.draining) return ScaledWorker::State::kEnding;
  return job.state == ClusterJob::State::kPending ? ScaledWorker::State::kPending : ScaledWorker::State::kRunning;
}

ScaleFacts ScaleLoop::State::FactsOf(const std::vector<ClusterJob>& jobs, const FleetDemand& fleet) {
  ScaleFacts facts{.waiting = fleet.waiting, .waiting_for = fleet.waiting_for, .calm_for = Since(calm_since, now)};
  for (const ClusterJob& job : jobs) {
    const Tracked& seen = tracked.at(job.id);
    facts.workers.push_back({job.id, StateOf(job), seen.joined, Since(seen.idle_since, now)});
  }
  for (const WorkerView& worker : fleet.workers) {
    facts.held += worker.chains;
    if (worker.draining) continue;
    facts.free_slots += std::max(0, worker.chain_slots - worker.chains);
    const bool ours = std::ranges::any_of(
        jobs, [&](const ClusterJob& job) { return absl::StartsWith(worker.id, job.worker_prefix); });
    if (!ours) facts.other_slots += worker.chain_slots;
  }
  Keep(facts.waiting > 0 && facts.free_slots > 0, now, &stuck_since);
  facts.stuck_for = Since(stuck_since, now);
  return facts;
}

// Jobs given up in one pass count as one failure, as those that ended by themselves.
void ScaleLoop::State::GiveUp(const std::vector<ClusterJob>& jobs) {
  std::vector<std::string> strangers, held;
  for (const ClusterJob& job : jobs) {
    if (!GiveUpOn(job)) continue;
    (job.held.empty() ? strangers : held).push_back(job.held.empty() ? job.id : job.id + ": " + job.held);
  }
  if (strangers.empty() && held.empty()) return;
  lost_jobs += static_cast<int64_t>(strangers.size() + held.size());
  DelayNextAsk();
  const LogField next_in = {"next_in", absl::FormatDuration(next_ask - now)};
  if (!strangers.empty()) {
    Log(LogLevel::kWarning,
        scaler->name() +
            " jobs ended because their workers never joined: see the jobs' output files, and check that "
            "their nodes reach the address that workers dial",
        {{"cluster_jobs", absl::StrJoin(strangers, ",")},
         {"waited", absl::FormatDuration(settings.join_within)},
         next_in});
  }
  if (!held.empty()) {
    Log(LogLevel::kWarning,
        scaler->name() + " holds jobs that will never start: jobs withdrawn; see the reason of each job",
        {{"cluster_jobs", absl::StrJoin(held, ",")}, next_in});
  }
}

bool ScaleLoop::State::GiveUpOn(const ClusterJob& job) {
  Tracked& seen = tracked[job.id];
  const bool stranger = seen.stranger_since && now - *seen.stranger_since >= settings.join_within;
  if (seen.unwanted || (job.held.empty() && !stranger)) return false;
  const bool given_up =
      job.held.empty() ? Worked("end a job", scaler->Kill(job.id)) : Worked("withdraw a job", scaler->Withdraw(job.id));
  if (!given_up) return false;
  seen.released_at = now;
  seen.unwanted = true;
  return true;
}

void ScaleLoop::State::Release(const std::string& job) {
  Tracked& seen = tracked[job];
  // Kill a job without a worker: there are no chains to hand back, and possibly no process that gets a signal.
  const absl::Status status = seen.live ? scaler->Drain(job) : scaler->Kill(job);
  if (!Worked("drain a worker", status)) return;
  seen.released_at = now;
  seen.unwanted = true;
  Log(LogLevel::kInfo, "draining an idle worker of " + scaler->name(),
      {{"cluster_job", job},
       {"idle_for", absl::FormatDuration(absl::Trunc(Since(seen.idle_since, now), absl::Seconds(1)))}});
}

void ScaleLoop::State::EndOverdue(const std::vector<ClusterJob>& jobs) {
  for (const ClusterJob& job : jobs) {
    Tracked& seen = tracked[job.id];
    if (job.state != ClusterJob::State::kRunning) continue;
    const bool stayed = seen.released_at && now - *seen.released_at >= kReleaseTime;
    // A worker that an operator drains gets no signal, so that it serves predictions on.
    const bool drained = !seen.released_at && seen.draining && Since(seen.idle_since, now) >= settings.idle_after;
    if (!stayed && !drained) continue;
    Log(stayed ? LogLevel::kWarning : LogLevel::kInfo,
        stayed ? "worker did not end in time, ending its job" : "worker is drained and idle, ending its job",
        {{"cluster_job", job.id}});
    if (!Worked("end a job", scaler->Kill(job.id))) continue;
    seen.released_at = now;
    seen.unwanted = true;
  }
}

void ScaleLoop::State::Ask(const ScaleDecision& decision, int64_t waiting) {
  if (decision.ask == 0 || now < next_ask) return;
  const int wanted = std::min(decision.ask, kSubmitsPerPass);
  int asked = 0;
  for (; asked < wanted; ++asked) {
    const absl::StatusOr<std::string> job = scaler->Submit();
    if (!Worked("submit a job", job.status())) {
      DelayNextAsk();
      break;
    }
    tracked[*job];  // track it now, in case it has ended before the next List
  }
  if (asked == 0) return;
  Log(LogLevel::kInfo, "asked " + scaler->name() + " for workers",
      {{"jobs", asked}, {"desired", decision.desired}, {"waiting_chains", waiting}});
}

void ScaleLoop::State::DelayNextAsk() {
  const absl::Duration delay = kFirstScaleBackoff * (int64_t{1} << std::min(failures++, 16));
  next_ask = std::max(next_ask, now + std::min(delay, kMaxScaleBackoff));
}

void ScaleLoop::State::Publish(const ScaleFacts& facts, int32_t desired) {
  ScaleCounts fresh{.desired = desired, .errors = errors, .lost_jobs = lost_jobs};
  for (const ScaledWorker& worker : facts.workers) {
    switch (worker.state) {
      case ScaledWorker::State::kPending:
        ++fresh.pending;
        break;
      case ScaledWorker::State::kRunning:
        ++fresh.running;
        break;
      case ScaledWorker::State::kEnding:
        ++fresh.ending;
        break;
    }
  }
  MutexLock lock(&mutex);
  counts = fresh;
}

}  // namespace chainfleet
