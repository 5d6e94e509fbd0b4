// A program that goes on when the command line ends: started detached, found again by its pid file.
//
// RUN_FOLDER/NAME.pid holds the pid, RUN_FOLDER/NAME.log what it prints; its working folder is RUN_FOLDER. A pid counts
// only if its process runs `program` in that folder: pid files outlive their processes, and pids are used again.
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
  // Absolute paths.
  Daemon(std::string name, std::string program, std::string run_folder);

  const std::string& name() const { return name_; }
  const std::string& program() const { return program_; }
  std::string log_path() const { return path(".log"); }

  // None if it is not running.
  std::optional<pid_t> Pid() const;

  // Starts `program` with `arguments` in a session of its own, appending to its log.
  absl::Status Start(const std::vector<std::string>& arguments) const;

  // SIGTERM, and SIGKILL after `grace`; removes the pid file. False if it was not running.
  absl::StatusOr<bool> Stop(absl::Duration grace, const Clock* clock) const;

  // The last lines of its log.
  std::vector<std::string> LogTail() const;

 private:
  std::string path(const char* extension) const { return run_folder_ + "/" + name_ + extension; }

  const std::string name_, program_, run_folder_;
};

// True as soon as `done` says so, asked often; false after `timeout`.
bool WaitUntil(const Clock* clock, absl::Duration timeout, const std::function<bool()>& done);

}  // namespace chainfleet
