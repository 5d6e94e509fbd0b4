// A job file: YAML or JSON text of a JobSpec, kept with the line of each field, so that what the parser or the server
// refuses is said as "job.yaml:7: sampler.emcmc.eta: ...".
#pragma once

#include <string>

#include "chainfleet/v1/jobs.pb.h"
#include "client/cli/yaml_message.h"
#include "core/base/status.h"

namespace chainfleet {

// Reason of every error that the user can mend in the job file.
inline constexpr char kJobFileReason[] = "JOB_FILE";

struct JobFile {
  std::string name;  // as in messages
  v1::JobSpec spec;
  FieldLines lines;
};

// INVALID_ARGUMENT / JOB_FILE with one violation per wrong field, its path being "NAME:LINE".
absl::StatusOr<JobFile> ParseJobFile(const std::string& name, const std::string& text);

// A server's refusal with its field paths turned into lines of the file; a field that is not in the file has the line
// of the nearest one around it. Any other status is returned as it is.
absl::Status LocateInJobFile(const JobFile& file, const absl::Status& status);

}  // namespace chainfleet
