// Runs a program until it exits and reads its output.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/status.h"

namespace chainfleet {

struct CommandLimits {
  absl::Duration time = absl::Seconds(10);
  size_t output_bytes = size_t{1} << 20;
  std::stop_token stop;                   // kills the program when it is requested
  std::string* standard_error = nullptr;  // gets the end of a failed program's, which the error then leaves out
};

// Runs `argv` and returns the standard output of a program that exited 0; tests replace it by a fake. `argv[0]` is
// looked up in PATH. No shell is involved.
using CommandRunner = std::function<absl::StatusOr<std::string>(const std::vector<std::string>& argv)>;

// Blocks. The program gets only `environment` (NAME=VALUE), an empty standard input and no other descriptors.
// NOT_FOUND: there is no such program. DEADLINE_EXCEEDED or RESOURCE_EXHAUSTED: it was killed at a limit. CANCELLED: it
// was stopped. UNAVAILABLE: it failed; the error has its exit status and the end of its standard error.
absl::StatusOr<std::string> RunCommand(const Clock& clock, const std::vector<std::string>& argv,
                                       const std::vector<std::string>& environment, const CommandLimits& limits = {});

// Finds the program in PATH. NOT_FOUND.
absl::StatusOr<std::string> FindProgram(const std::string& program, const std::string& path);

}  // namespace chainfleet
