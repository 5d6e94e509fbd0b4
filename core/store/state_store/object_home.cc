#include "core/store/state_store/object_home.h"

#include "absl/strings/str_cat.h"

namespace chainfleet {

absl::Status CheckHome(const ObjectHome& kept, const ObjectHome& mine) {
  if (mine.moved || mine.id == kept.id || mine.id.empty() || kept.id.empty()) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "the objects of this state store are in ", kept.address, ", not in ", mine.address,
          ": start the server with the --blobs, or on the host and --data-dir, that has them; or, if all of them were "
          "copied to ",
          mine.address, " under the same names, once with --objects-moved")),
      "OTHER_STORE");
}

}  // namespace chainfleet
