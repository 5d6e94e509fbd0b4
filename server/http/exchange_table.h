// Requests of the HTTP port that have begun and whose replies are not read yet.
#pragma once

#include <functional>
#include <map>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace chainfleet {

// The state of each request and its start. The table ends connections that are too slow, and the work for clients that
// have gone away. Thread-safe.
class ExchangeTable {
 public:
  explicit ExchangeTable(const Clock* clock) : clock_(clock) {}

  // A request: its socket, which stays open until Remove.
  using Key = int;
  void AddReceiving(Key socket);
  void Remove(Key socket);

  // False once CancelAll was called: the request must be refused. Otherwise EndAnswer and then CountAnswer follow.
  bool BeginAnswer(Key socket);
  // `cancel` may run until EndAnswer, and at once if CancelAll has begun.
  void KeepCancel(Key socket, std::function<void()> cancel);
  // The reply is known; the connection may be resumed.
  void EndAnswer(Key socket);
  // The connection was resumed.
  void CountAnswer();

  // Called every limits::kHttpWatch.
  void LookAtAll();
  // Returns when all answers are counted and sent, or when no client has read one for limits::kHttpFarewell.
  void CancelAll();

 private:
  enum class Phase { kReceiving, kAnswering, kSending };
  struct State {
    Phase phase = Phase::kReceiving;
    absl::Duration since;          // monotonic; the beginning of the phase
    std::function<void()> cancel;  // null unless it is being answered
  };
  void Enter(Key socket, Phase phase) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  Mutex mutex_;
  CondVar all_answered_, removed_;
  std::map<Key, State> states_ CHAINFLEET_GUARDED_BY(mutex_);
  int answering_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace chainfleet
