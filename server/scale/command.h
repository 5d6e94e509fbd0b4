// Runs a program to its end and reads what it says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/status.h"

namespace chainfleet {

struct CommandLimits {
  absl::Duration time = absl::Seconds(10);
  size_t output_bytes = size_t{1} << 20;
};

// What a caller may replace by a fake: `argv` to the standard output of a program that exited 0. `argv[0]` is looked up
// in PATH; no shell reads anything.
using CommandRunner = std::function<absl::StatusOr<std::string>(const std::vector<std::string>& argv)>;

// Blocks. The program has `environment` (NAME=VALUE) and nothing else, an empty standard input and none of our
// descriptors. NOT_FOUND if it is not there; DEADLINE_EXCEEDED or RESOURCE_EXHAUSTED if it was killed for a limit;
// UNAVAILABLE if it failed, with the exit status and the end of its standard error.
absl::StatusOr<std::string> RunCommand(const Clock& clock, const std::vector<std::string>& argv,
                                       const std::vector<std::string>& environment, const CommandLimits& limits = {});

// Where PATH has the program; NOT_FOUND.
absl::StatusOr<std::string> FindProgram(const std::string& program, const std::string& path);

}  // namespace chainfleet
