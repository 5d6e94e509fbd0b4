#include "server/control/state_writer.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/mutex.h"

namespace chainfleet {

struct StateWriter::State {
  State(const Clock* c, Executor* e, StateStore* s, std::function<void(const absl::Status&)> lost)
      : clock(c), executor(e), store(s), on_lost(std::move(lost)) {}

  const Clock* const clock;
  Executor* const executor;
  StateStore* const store;
  const std::function<void(const absl::Status&)> on_lost;

  Mutex mutex;
  CondVar idle;
  std::deque<std::pair<StateChange, Done>> queue CHAINFLEET_GUARDED_BY(mutex);
  bool scheduled CHAINFLEET_GUARDED_BY(mutex) = false;
  bool draining CHAINFLEET_GUARDED_BY(mutex) = false;
  absl::Status loss CHAINFLEET_GUARDED_BY(mutex);

  // One group. The next is a task of its own, so that a busy store does not hold a thread for ever.
  static void Drain(const std::shared_ptr<State>& state) {
    std::vector<StateChange> changes;
    std::vector<Done> callbacks;
    {
      MutexLock lock(&state->mutex);
      if (!state->loss.ok()) return;
      state->draining = true;
      const size_t count = std::min<size_t>(state->queue.size(), limits::kStateWriterBatch);
      for (size_t i = 0; i < count; ++i) {
        changes.push_back(std::move(state->queue.front().first));
        callbacks.push_back(std::move(state->queue.front().second));
        state->queue.pop_front();
      }
    }
    auto results = state->store->Apply(changes, state->clock->Wall());
    if (!results.ok()) Lose(state.get(), results.status(), &callbacks);
    for (size_t i = 0; i < callbacks.size(); ++i) {
      ApplyResult result;
      if (results.ok()) {
        result = std::move((*results)[i]);
      } else {
        result.status = results.status();
      }
      callbacks[i](std::move(result));
    }
    MutexLock lock(&state->mutex);
    state->draining = false;
    state->scheduled = !state->queue.empty();
    if (state->scheduled) state->executor->Schedule([state] { Drain(state); });
    state->idle.SignalAll();
  }

  static void Lose(State* state, const absl::Status& loss, std::vector<Done>* callbacks) {
    {
      MutexLock lock(&state->mutex);
      state->loss = loss;
      for (auto& [change, done] : state->queue) callbacks->push_back(std::move(done));
      state->queue.clear();
    }
    state->on_lost(loss);
  }
};

StateWriter::StateWriter(const Clock* clock, Executor* executor, StateStore* store,
                         std::function<void(const absl::Status&)> on_lost)
    : state_(std::make_shared<State>(clock, executor, store, std::move(on_lost))) {}

void StateWriter::Close() {
  MutexLock lock(&state_->mutex);
  state_->loss = absl::CancelledError("the coordinator is shutting down");
  state_->queue.clear();
  while (state_->draining) state_->idle.Wait(&state_->mutex);
}

absl::Status StateWriter::Append(StateChange change, Done done) {
  MutexLock lock(&state_->mutex);
  if (!state_->loss.ok()) return state_->loss;
  if (state_->queue.size() >= static_cast<size_t>(limits::kStateWriterQueue)) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          limits::kStateWriterQueue, " changes wait for the state store: repeat with backoff")),
                      "OVERLOADED");
  }
  state_->queue.emplace_back(std::move(change), std::move(done));
  if (!std::exchange(state_->scheduled, true)) {
    state_->executor->Schedule([state = state_] { State::Drain(state); });
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
