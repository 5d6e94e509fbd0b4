// The password of a database, printed by a command that runs again while the process lives: managed databases hand out
// passwords that expire within minutes.
#pragma once

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace chainfleet {

// Thread-safe.
class DatabasePassword {
 public:
  // A standby connects every second, and an election opens several connections, so each run serves for a while.
  static constexpr absl::Duration kUse = absl::Minutes(1), kPause = absl::Seconds(5);

  // A shell runs `command` with `environment` (NAME=VALUE). `clock` is not owned. `stop` ends a command that runs.
  DatabasePassword(std::string command, std::vector<std::string> environment, const Clock* clock,
                   std::stop_token stop = {})
      : command_(std::move(command)), environment_(std::move(environment)), clock_(clock), stop_(std::move(stop)) {}

  // The line that the command printed within the last kUse. Otherwise runs the command, which takes 10 s at most.
  // UNAVAILABLE / STORE_UNREACHABLE: it failed, now or within the last kPause. The error has the exit status and no
  // output; the end of a failed command's standard error is logged.
  absl::StatusOr<std::string> Get();

  // A connection with this password failed: Get runs the command again, unless it ran within the last kPause.
  void Distrust();

 private:
  absl::StatusOr<std::string> Run() const;

  const std::string command_;
  const std::vector<std::string> environment_;
  const Clock* const clock_;
  const std::stop_token stop_;
  Mutex mutex_;
  absl::StatusOr<std::string> printed_ CHAINFLEET_GUARDED_BY(mutex_);
  absl::Duration ran_ CHAINFLEET_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // monotonic time
  bool trusted_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace chainfleet
