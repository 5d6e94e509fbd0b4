// How the command line ends: one exit code for each kind of failure, and one error on stderr.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

enum ExitCode {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitNotFound = 3,
  kExitAuth = 4,
  kExitUnavailable = 5,  // or timeout
  kExitDataLoss = 6,     // stored or received bytes are lost or damaged
  kExitInterrupted = 130,
};

// Reason of errors on the command line itself.
inline constexpr char kUsageReason[] = "USAGE";

// Reason of errors of a verb that Ctrl-C or SIGTERM ended.
inline constexpr char kInterruptedReason[] = "INTERRUPTED";

// By status code; errors that the user corrects on the command line or in the job file are usage errors.
ExitCode ExitCodeOf(const absl::Status& status);

// "error: MESSAGE\n": the message on one line, with the id of the failed request if there is one. Several field
// violations follow on indented lines. With `color`, "error:" is coloured.
std::string FormatError(const absl::Status& status, bool color);

}  // namespace chainfleet
