// A program that outlives the command line: started detached, found again by its pid file.
//
// RUN_FOLDER/NAME.pid holds the pid, RUN_FOLDER/NAME.log the output; the working folder is RUN_FOLDER. A pid counts
// only if its process runs `program` in that folder, because pid files outlive their processes and pids are reused.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/status.h"

namespace chainfleet {

class Daemon {
 public:
  // Paths are absolute.
  Daemon(std::string name, std::string program, std::string run_folder);

  const std::string& name() const { return name_; }
  const std::string& program() const { return program_; }
  std::string log_path() const { return path(".log"); }

  // nullopt if it is not running.
  std::optional<pid_t> Pid() const;
  // True if it was started and is not running, and Stop did not end it.
  bool HasEnded() const;
  // Returns " with exit status 1" or " by signal 9 (Killed)", once. Empty if another program started it, or if its
  // status is not known within `patience`.
  std::string HowItEnded(absl::Duration patience, const Clock* clock) const;

  // Starts `program` with `arguments` in its own session, with output appended to the log.
  absl::Status Start(const std::vector<std::string>& arguments) const;

  // Sends SIGTERM, then SIGKILL after `grace`, and removes the pid file. False if it was not running.
  absl::StatusOr<bool> Stop(absl::Duration grace, const Clock* clock) const;

  // The last lines of its log.
  std::vector<std::string> LogTail() const;

 private:
  std::string path(const char* extension) const { return run_folder_ + "/" + name_ + extension; }
  pid_t ReadPid() const;  // 0 without a pid file

  const std::string name_, program_, run_folder_;
};

// Polls `done`. True as soon as it returns true; false after `timeout`.
bool WaitUntil(const Clock* clock, absl::Duration timeout, const std::function<bool()>& done);

}  // namespace chainfleet
