// The paths at which a job is wrong.
#pragma once

#include <string>
#include <vector>

#include "core/domain/job_spec.h"

namespace chainfleet {

inline std::vector<std::string> InvalidPaths(const JobSpec& spec) {
  std::vector<std::string> paths;
  for (const FieldViolation& violation : Validate(spec)) paths.push_back(violation.path);
  return paths;
}

}  // namespace chainfleet
