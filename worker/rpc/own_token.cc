#include "worker/rpc/own_token.h"

#include <optional>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/command.h"
#include "core/base/environment.h"

namespace chainfleet {
namespace {

constexpr char kWorkerTokenCommand[] = "CHAINFLEET_WORKER_TOKEN_COMMAND";
constexpr size_t kMaxPrintedBytes = 64 * 1024;

std::vector<std::string> EnvironmentWithoutTokens() {
  std::vector<std::string> environment = OwnEnvironment();
  for (const char* name : {kCallerToken, kWorkerToken, kMetricsToken}) {
    const std::string prefix = absl::StrCat(name, "=");
    std::erase_if(environment, [&](const std::string& variable) { return variable.starts_with(prefix); });
  }
  return environment;
}

absl::StatusOr<std::string> PrintedToken() {
  std::string said;  // shown to nobody: it may quote the token
  const CommandLimits limits{.output_bytes = kMaxPrintedBytes, .standard_error = &said};
  const absl::StatusOr<std::string> printed = RunCommand(
      SystemClock(), {"/bin/sh", "-c", EnvironmentVariable(kWorkerTokenCommand)}, EnvironmentWithoutTokens(), limits);
  CHAINFLEET_RETURN_IF_ERROR(Annotate(printed.status(), kWorkerTokenCommand));
  std::string token;
  std::istringstream(*printed) >> token;
  if (token.empty()) return absl::InvalidArgumentError(absl::StrCat(kWorkerTokenCommand, " printed nothing"));
  return token;
}

}  // namespace

bool TokenIsPrinted() {
  return EnvironmentVariable(kWorkerToken).empty() &&
         EnvironmentVariable(absl::StrCat(kWorkerToken, "_FILE")).empty() &&
         !EnvironmentVariable(kWorkerTokenCommand).empty();
}

absl::StatusOr<std::string> OwnToken() {
  if (TokenIsPrinted()) return PrintedToken();
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<std::string> given, TokenText(kWorkerToken));
  // An emptied file of the worker's token must not make it send a caller's.
  return BearerToken(given ? kWorkerToken : kCallerToken);
}

}  // namespace chainfleet
