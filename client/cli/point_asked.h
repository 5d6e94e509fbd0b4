// The point of a job's sweep that a user names.
#pragma once

#include <cstdint>
#include <string>

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/status.h"

namespace chainfleet {

// The number of the point; 0 without a sweep. INVALID_ARGUMENT, naming the job and its points.
absl::StatusOr<int32_t> PointAsked(const v1::Job& job, const std::string& point);

}  // namespace chainfleet
