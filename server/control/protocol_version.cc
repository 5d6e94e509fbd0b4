#include "server/control/protocol_version.h"

#include "absl/strings/str_cat.h"

namespace chainfleet {

static_assert(kOldestProtocolVersion == kProtocolVersion || kOldestProtocolVersion == kProtocolVersion - 1,
              "a server speaks one protocol and the one before");

absl::Status CheckProtocolVersion(const std::string& worker, int32_t version, SpokenVersions spoken) {
  if (version >= spoken.oldest && version <= spoken.newest) return absl::OkStatus();
  return WithReason(absl::FailedPreconditionError(absl::StrCat("worker ", worker, " speaks protocol ", version,
                                                               ", this server ", spoken.oldest, " to ", spoken.newest,
                                                               ": run the same release on both")),
                    "VERSION_MISMATCH");
}

}  // namespace chainfleet
