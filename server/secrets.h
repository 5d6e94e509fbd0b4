// The secrets that the server reads again while it runs: tokens of callers and workers, and the keys of draws.
#pragma once

#include <stop_token>
#include <string>

#include "core/base/clock.h"
#include "core/base/reread.h"
#include "core/base/status.h"
#include "core/store/blob_store/object_keys.h"
#include "server/rpc/auth.h"

namespace chainfleet {

// The tokens of CHAINFLEET_TOKEN and CHAINFLEET_WORKER_TOKEN, or of the files that the environment names. Errors of
// TokenText and ParseTokens. Reread::ReadOn reads them again each second.
absl::StatusOr<Reread<TokenTable>> OpenTokens(bool has_issuer);

// The keys in `file`, or those that `command` prints: a shell runs it. Reread::ReadOn reads the file again each second,
// or runs the command again every five minutes. No keys if both are empty. Errors hold no key, unless a failing command
// writes one to its standard error. `clock` outlives the keys. `stop` ends a command that runs.
absl::StatusOr<Reread<ObjectKeys>> OpenDrawKeys(const std::string& file, const std::string& command, const Clock* clock,
                                                std::stop_token stop);

}  // namespace chainfleet
