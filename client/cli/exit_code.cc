#include "client/cli/exit_code.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/job_file.h"
#include "core/base/escaped.h"
#include "core/wire/grpc_status.h"

namespace chainfleet {

ExitCode ExitCodeOf(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  if (reason == kJobFileReason || reason == kUsageReason) return kExitUsage;
  if (reason == kInterruptedReason) return kExitInterrupted;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return kExitAuth;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitUnavailable;
    case absl::StatusCode::kDataLoss:
      return kExitDataLoss;
    default:
      return kExitFailed;
  }
}

std::string FormatError(const absl::Status& status, bool color) {
  const auto one_line = [](const std::string& text) {
    return Escaped(absl::StrReplaceAll(text, {{"\r\n", " "}, {"\n", " "}}));
  };
  std::string text = color ? "\x1b[1;31merror:\x1b[0m " : "error: ";
  const std::string id = RequestIdOf(status);
  const std::string request = id.empty() ? "" : absl::StrCat(" (request ", id, ")");
  const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(RetryAfterOf(status), absl::Seconds(1)));
  const bool waits = absl::IsResourceExhausted(status) && seconds > 0;
  const std::vector<FieldViolation> violations = FieldViolationsOf(status);
  if (violations.size() < 2) {
    const std::string message(status.message());
    return absl::StrCat(text, one_line(message.empty() ? absl::StatusCodeToString(status.code()) : message), request,
                        "\n", waits ? absl::StrCat("try again in ", seconds, " s\n") : "");
  }
  absl::StrAppend(&text, violations.size(), " fields are wrong", request, "\n");
  for (const FieldViolation& v : violations) absl::StrAppend(&text, "  ", v.path, ": ", one_line(v.message), "\n");
  return text;
}

}  // namespace chainfleet
