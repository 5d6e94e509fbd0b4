// The errors of a name that nothing has.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace chainfleet {

// NOT_FOUND / KIND_NOT_FOUND; the message names the command that lists what there is. `kind` as commands say it: job,
// dataset, model, alias, worker, evaluation
// or token.
absl::Status NoSuch(std::string_view kind, const std::string& name);

// NOT_FOUND / SEGMENT_NOT_FOUND: the job has no segment of draws whose object has this name.
absl::Status NoSuchSegment(const std::string& job, const std::string& object);

}  // namespace chainfleet
