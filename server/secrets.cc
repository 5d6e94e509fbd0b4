#include "server/secrets.h"

#include <memory>
#include <optional>
#include <utility>

#include "core/base/command.h"
#include "core/base/environment.h"
#include "core/base/file_system.h"
#include "core/base/log.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kFileInterval = absl::Seconds(1), kCommandInterval = absl::Minutes(5);
constexpr absl::Duration kCommandTime = absl::Seconds(60);
constexpr size_t kMostKeysBytes = 1 << 20;

}  // namespace

absl::StatusOr<Reread<TokenTable>> OpenTokens(bool has_issuer) {
  struct Past {
    bool several = false;   // a writer must not become an admin because the other lines of the file were deleted
    int without_admin = 2;  // readings in turn: more than 2 from the start on, of which the server warns itself
  };
  const auto read = [has_issuer, past = std::make_shared<Past>()]() -> absl::StatusOr<TokenTable> {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<std::string> callers, TokenText(kCallerToken));
    CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<std::string> workers, TokenText(kWorkerToken));
    CHAINFLEET_ASSIGN_OR_RETURN(TokenTable tokens,
                                ParseTokens(callers, workers, has_issuer, /*lone_is_admin=*/!past->several));
    past->several |= NumCallers(tokens) > 1;
    past->without_admin = HasFleetAdmin(tokens) ? 0 : past->without_admin + 1;
    if (past->without_admin == 2) {  // one reading may meet half a file
      Log(LogLevel::kWarning,
          "the changed tokens have no admin of the fleet: write admin into a line without a tenant");
    }
    return tokens;
  };
  return Reread<TokenTable>::Open("tokens", read, kFileInterval);
}

absl::StatusOr<Reread<ObjectKeys>> OpenDrawKeys(const std::string& file, const std::string& command, const Clock* clock,
                                                std::stop_token stop) {
  if (file.empty() && command.empty()) return Reread<ObjectKeys>();
  const CommandLimits limits{.time = kCommandTime, .output_bytes = kMostKeysBytes, .stop = std::move(stop)};
  const auto read = [=, environment = OwnEnvironment()]() -> absl::StatusOr<ObjectKeys> {
    const absl::StatusOr<std::string> text = file.empty()
                                                 ? RunCommand(*clock, {"/bin/sh", "-c", command}, environment, limits)
                                                 : RealFileSystem()->ReadRange(file, 0, kMostKeysBytes);
    CHAINFLEET_RETURN_IF_ERROR(Annotate(text.status(), "--draw-keys"));
    return ObjectKeys::Parse(*text);
  };
  return Reread<ObjectKeys>::Open("keys of draws", read, file.empty() ? kCommandInterval : kFileInterval);
}

}  // namespace chainfleet
