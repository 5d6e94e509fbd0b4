// Whether what a commit brings is its chain's own. A record may name nothing else: what the next one supersedes is
// deleted by its name, and a sweep takes what is named with an older epoch.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/domain/progress_record.h"

namespace chainfleet {

// Each object is named as the chain's segment or resume point in this store, at the lease epoch of the commit, with the
// digest that the commit has for it. INVALID_ARGUMENT / INVALID_FIELD. Pure, as is the one below.
absl::Status CheckObjectNames(const ProgressCommit& commit, const std::string& store_incarnation);

// The names, and a resume point that is either inline or an object, with the digest of its bytes. DATA_LOSS /
// DIGEST_MISMATCH for inline bytes that have another: they were damaged on their way, the worker sends them again. A
// resume point without bytes passes.
absl::Status CheckContent(const ProgressCommit& commit, const std::string& store_incarnation);

}  // namespace chainfleet
