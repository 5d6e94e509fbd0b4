// A job file: YAML or JSON text of a JobSpec, with the line of each field, so that errors of the parser or the server
// name it: "job.yaml:7: sampler.emcmc.eta: ...".
#pragma once

#include <string>

#include "chainfleet/v1/jobs.pb.h"
#include "client/cli/yaml_message.h"
#include "core/base/status.h"

namespace chainfleet {

// Reason of every error that the user can correct in the job file.
inline constexpr char kJobFileReason[] = "JOB_FILE";

struct JobFile {
  std::string name;  // name in messages
  v1::JobSpec spec;
  FieldLines lines;
};

// INVALID_ARGUMENT / JOB_FILE with one violation per wrong field; its path is "NAME:LINE".
absl::StatusOr<JobFile> ParseJobFile(const std::string& name, const std::string& text);

// Replaces the field paths of a server's error by lines of the file. A field that is not in the file gets the line of
// the nearest enclosing one. Other statuses are returned unchanged.
absl::Status LocateInJobFile(const JobFile& file, const absl::Status& status);

}  // namespace chainfleet
