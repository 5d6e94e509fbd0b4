// How the command line ends: one exit code per kind of failure and one error on stderr.
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
  kExitInterrupted = 130,
};

// Reason of errors in the command line itself.
inline constexpr char kUsageReason[] = "USAGE";

// By code, except for what the user mends in the command line or the job file: usage.
ExitCode ExitCodeOf(const absl::Status& status);

// "error: MESSAGE\n", the message on one line with the id of the request that failed, if there is one; several field
// violations follow on indented lines of their own. A color marks "error:" if `color`.
std::string FormatError(const absl::Status& status, bool color);

}  // namespace chainfleet
