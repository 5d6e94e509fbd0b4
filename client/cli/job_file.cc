#include "client/cli/job_file.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

// "job.yaml:7", or "job.yaml" if neither the field nor one around it was given.
std::string PlaceOf(const JobFile& file, std::string path) {
  for (;;) {
    if (const auto line = file.lines.find(path); line != file.lines.end())
      return absl::StrCat(file.name, ":", line->second);
    const size_t parent = path.find_last_of(".[");
    if (parent == std::string::npos) return file.name;
    path.resize(parent);
  }
}

}  // namespace

absl::StatusOr<JobFile> ParseJobFile(const std::string& name, const std::string& text) {
  JobFile file{name, {}, {}};
  std::vector<FieldViolation> violations;
  if (static_cast<int64_t>(text.size()) > limits::kMiB) {
    violations.push_back({name, "is larger than 1 MiB: this is not a job file"});
  } else {
    violations = ReadYamlMessage(name, text, &file.spec, &file.lines);
  }
  if (!violations.empty()) return WithReason(InvalidFields(violations), kJobFileReason);
  return file;
}

absl::Status LocateInJobFile(const JobFile& file, const absl::Status& status) {
  std::vector<FieldViolation> located;
  for (const FieldViolation& v : FieldViolationsOf(status)) {
    located.push_back({PlaceOf(file, v.path), absl::StrCat(v.path, ": ", v.message)});
  }
  return located.empty() ? status : WithReason(InvalidFields(located), kJobFileReason);
}

}  // namespace chainfleet
