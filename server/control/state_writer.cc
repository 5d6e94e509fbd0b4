#include "server/control/state_writer.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/mutex.h"

namespace chainfleet {
namespace {

// Returns the job whose committed draws the change alters, hides or restores; null for other changes.
const std::string* JobOfChangedDraws(const StateChange& change) {
  if (const auto* mark = std::get_if<change::MarkCorrupt>(&change)) return &mark->job;
  if (const auto* expire = std::get_if<change::ExpireSegments>(&change)) return &expire->chain.job;
  if (const auto* purge = std::get_if<change::PurgeJob>(&change)) return &purge->job;
  return nullptr;
}

}  // namespace

struct StateWriter::State : std::enable_shared_from_this<State> {
  State(const Clock* c, Executor* e, StateStore* s, std::function<void(const absl::Status&)> lost)
      : clock(c), executor(e), store(s), on_lost(std::move(lost)) {}

  const Clock* const clock;
  Executor* const executor;
  StateStore* const store;
  const std::function<void(const absl::Status&)> on_lost;

  Mutex mutex;
  CondVar changed;
  std::deque<std::pair<StateChange, Done>> queue CHAINFLEET_GUARDED_BY(mutex);
  bool scheduled CHAINFLEET_GUARDED_BY(mutex) = false;
  bool draining CHAINFLEET_GUARDED_BY(mutex) = false;  // a group is being written, or its callbacks run
  int applying CHAINFLEET_GUARDED_BY(mutex) = 0;       // calls that the store has not answered
  absl::Status loss CHAINFLEET_GUARDED_BY(mutex);
  std::function<void(const std::string& job)> draws_changed CHAINFLEET_GUARDED_BY(mutex);

  void Write(StateChange change, const Done& done) {
    const absl::Status appended = Append(std::move(change), done);
    if (!appended.ok()) executor->Schedule([done, appended] { done(Refused(appended)); });
  }

  absl::Status Append(StateChange change, Done done) {
    MutexLock lock(&mutex);
    if (!loss.ok()) return loss;
    if (queue.size() >= static_cast<size_t>(limits::kStateWriterQueue)) {
      return BoundReached(
          "waiting_changes",
          absl::StrCat(limits::kStateWriterQueue, " changes wait for the state store: repeat with backoff"),
          "OVERLOADED");
    }
    queue.emplace_back(std::move(change), std::move(done));
    if (!std::exchange(scheduled, true)) ScheduleDrain();
    return absl::OkStatus();
  }

  // This function, Apply and Drain end the process if there is no memory: a change, and then Close, would wait forever.
  // The next process reads the stored state again.
  void ScheduleDrain() noexcept {
    executor->Schedule([self = shared_from_this()] { self->Drain(); });
  }

  void Persist(const StateChange& change) {
    Write(change, [weak = weak_from_this(), change](const ApplyResult& result) {
      const auto state = weak.lock();
      if (state == nullptr || !absl::IsResourceExhausted(result.status)) return;
      state->executor->ScheduleAfter(limits::kRetryMax, [weak, change] {
        if (const auto again = weak.lock()) again->Persist(change);
      });
    });
  }

  absl::StatusOr<std::vector<ApplyResult>> Apply(const std::vector<StateChange>& changes) noexcept {
    {
      MutexLock lock(&mutex);
      if (!loss.ok()) return loss;
      ++applying;
    }
    absl::StatusOr<std::vector<ApplyResult>> results = store->Apply(changes, clock->Wall());
    ReportDraws(changes);
    bool lost = false;
    {
      MutexLock lock(&mutex);
      --applying;
      lost = !results.ok() && loss.ok();
      if (lost) loss = results.status();
      changed.SignalAll();
    }
    if (lost) on_lost(results.status());
    return results;
  }

  // Runs also after an error, which may leave open whether the changes were committed.
  void ReportDraws(const std::vector<StateChange>& changes) {
    std::function<void(const std::string& job)> report;
    {
      MutexLock lock(&mutex);
      report = draws_changed;
    }
    if (report == nullptr) return;
    for (const StateChange& change : changes) {
      if (const std::string* job = JobOfChangedDraws(change)) report(*job);
    }
  }

  // Writes one group. The next group is a separate task, so that a busy store does not occupy a thread for long.
  void Drain() noexcept {
    std::vector<StateChange> changes;
    std::vector<Done> callbacks;
    {
      MutexLock lock(&mutex);
      draining = true;
      const size_t count = std::min<size_t>(queue.size(), limits::kStateWriterBatch);
      for (size_t i = 0; i < count; ++i) {
        changes.push_back(std::move(queue.front().first));
        callbacks.push_back(std::move(queue.front().second));
        queue.pop_front();
      }
    }
    if (!changes.empty()) Finish(Apply(changes), std::move(callbacks));
    MutexLock lock(&mutex);
    draining = false;
    scheduled = !queue.empty();
    if (scheduled) ScheduleDrain();
    changed.SignalAll();
  }

  void Finish(absl::StatusOr<std::vector<ApplyResult>> results, std::vector<Done> callbacks) {
    if (results.ok()) {
      for (size_t i = 0; i < callbacks.size(); ++i) callbacks[i](std::move((*results)[i]));
      return;
    }
    {
      MutexLock lock(&mutex);
      for (auto& [change, done] : queue) callbacks.push_back(std::move(done));
      queue.clear();
    }
    for (const Done& done : callbacks) done(Refused(results.status()));
  }
};

StateWriter::StateWriter(const Clock* clock, Executor* executor, StateStore* store,
                         std::function<void(const absl::Status&)> on_lost)
    : executor_(executor), state_(std::make_shared<State>(clock, executor, store, std::move(on_lost))) {}

StateWriter::~StateWriter() { Close(); }

void StateWriter::Close() {
  MutexLock lock(&state_->mutex);
  state_->loss = absl::CancelledError("the coordinator is shutting down");
  state_->queue.clear();
  while (state_->draining || state_->applying > 0) state_->changed.Wait(&state_->mutex);
}

void StateWriter::Write(StateChange change, const Done& done) { state_->Write(std::move(change), done); }

void StateWriter::Persist(const StateChange& change) { state_->Persist(change); }

void StateWriter::OnDrawsChanged(std::function<void(const std::string& job)> changed) {
  MutexLock lock(&state_->mutex);
  state_->draws_changed = std::move(changed);
}

absl::StatusOr<std::vector<ApplyResult>> StateWriter::Commit(const std::vector<StateChange>& changes) {
  return state_->Apply(changes);
}

}  // namespace chainfleet
