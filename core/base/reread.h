// A secret in a file or from a command, which is read again while the process runs.
#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace chainfleet {

// Copies share the value. Thread-safe. REQUIRES: T has ==; T() is the empty value.
template <typename T>
class Reread {
 public:
  // Reads the value. Its errors are logged, so they must not quote the secret. CANCELLED, which says that the process
  // ends, is not logged.
  using Source = std::function<absl::StatusOr<T>()>;

  // A value that never changes.
  Reread() : Reread(T()) {}
  template <std::convertible_to<T> Value>
  Reread(Value&& value) : state_(std::make_shared<State>(T(std::forward<Value>(value)))) {}

  // Reads the value now, and again in each call of Current; with an `interval` only as ReadOn says. `name` names the
  // secret in the log. Errors of `source`.
  static absl::StatusOr<Reread> Open(const std::string& name, Source source,
                                     absl::Duration interval = absl::ZeroDuration()) {
    CHAINFLEET_ASSIGN_OR_RETURN(T value, source());
    return Reread(std::make_shared<State>(std::move(value), name, std::move(source), interval));
  }

  // Reads the value on `executor` once per interval, until all copies are gone. A reading may meet a file that is half
  // written, so a changed value is taken only if the next reading, a second later at most, gives the same. Does nothing
  // for a value that never changes. Called at most once. REQUIRES: an interval.
  void ReadOn(Executor* executor) const {
    if (state_->source) ReadAfter(state_->interval, executor, state_);
  }

  // May block as the source does if there is no interval. An error, or an empty value in place of another, keeps the
  // former value; each such error is logged once.
  std::shared_ptr<const T> Current() const {
    if (state_->source && state_->interval == absl::ZeroDuration()) state_->Read();
    return state_->Value();
  }

  // The value of the last reading. Does not read.
  std::shared_ptr<const T> Last() const { return state_->Value(); }

 private:
  struct State {
    explicit State(T first, std::string named = "", Source from = nullptr, absl::Duration every = {})
        : name(std::move(named)),
          source(std::move(from)),
          interval(every),
          value(std::make_shared<const T>(std::move(first))) {}

    std::shared_ptr<const T> Value() {
      MutexLock lock(&mutex);
      return value;
    }

    // Returns true if the next reading decides about a changed value.
    bool Read() {
      MutexLock one_at_a_time(&reading);
      absl::StatusOr<T> read = source();
      if (absl::IsCancelled(read.status())) return false;
      const std::shared_ptr<const T> former = Value();
      if (read.ok() && *read == T() && !(*former == T())) read = absl::InvalidArgumentError("it is empty now");
      const std::string message(read.status().message());
      if (std::exchange(error, message) != message && !read.ok()) {
        Log(LogLevel::kError, "secret not read again: the former one stays in use",
            {{"secret", name}, {"error", message}});
      }
      const std::optional<T> before = std::exchange(changed, std::nullopt);
      if (!read.ok() || *read == *former) return false;
      if (interval > absl::ZeroDuration() && before != *read) {
        changed = *std::move(read);
        return true;
      }
      Log(LogLevel::kInfo, "secret has changed", {{"secret", name}});
      auto next = std::make_shared<const T>(*std::move(read));
      MutexLock lock(&mutex);
      value = std::move(next);
      return false;
    }

    const std::string name;
    const Source source;  // none: the value never changes
    const absl::Duration interval;
    Mutex reading;
    std::string error CHAINFLEET_GUARDED_BY(reading);         // the last reading's
    std::optional<T> changed CHAINFLEET_GUARDED_BY(reading);  // the last reading's, not taken yet
    Mutex mutex;
    std::shared_ptr<const T> value CHAINFLEET_GUARDED_BY(mutex);
  };

  explicit Reread(std::shared_ptr<State> state) : state_(std::move(state)) {}

  static void ReadAfter(absl::Duration delay, Executor* executor, std::weak_ptr<State> weak) {
    executor->ScheduleAfter(delay, [executor, weak = std::move(weak)] {
      const std::shared_ptr<State> state = weak.lock();
      if (state == nullptr) return;
      absl::Duration next = state->interval;
      const absl::Cleanup again = [&] { ReadAfter(next, executor, weak); };  // also if there is no memory now
      if (state->Read()) next = std::min(next, absl::Seconds(1));
    });
  }

  std::shared_ptr<State> state_;
};

}  // namespace chainfleet
