// Checks that a commit names only objects of its own chain. The store deletes superseded objects by name, and a garbage
// sweep deletes objects of older epochs, so a record must never name anything else.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/domain/progress_record.h"

namespace chainfleet {

// Each object must have the name of the chain's segment or resume point in this store, at the commit's lease epoch,
// with the commit's digest. So must the proof of the resume point. INVALID_ARGUMENT / INVALID_FIELD. Pure, like
// CheckContent.
absl::Status CheckObjectNames(const ProgressCommit& commit, const std::string& store_incarnation);

// Checks the names, and that a resume point is either inline or an object, with the digest of its bytes. DATA_LOSS /
// DIGEST_MISMATCH: inline bytes have another digest; they were damaged in transit and the worker sends them again. A
// resume point without bytes passes.
absl::Status CheckContent(const ProgressCommit& commit, const std::string& store_incarnation);

}  // namespace chainfleet
