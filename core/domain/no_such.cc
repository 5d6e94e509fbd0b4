#include "core/domain/no_such.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace chainfleet {

absl::Status NoSuch(std::string_view kind, const std::string& name) {
  const std::string reason =
      std::map<std::string_view, const char*>{
          {"job", "JOB_NOT_FOUND"},     {"dataset", "DATASET_NOT_FOUND"}, {"model", "MODEL_NOT_FOUND"},
          {"alias", "ALIAS_NOT_FOUND"}, {"worker", "WORKER_NOT_FOUND"},   {"evaluation", "EVALUATION_NOT_FOUND"},
          {"token", "TOKEN_NOT_FOUND"},
      }
          .at(kind);
  const std::string word(kind), noun = kind == "dataset" ? "data set" : word;
  return WithReason(absl::NotFoundError(absl::StrCat("no ", noun, " ", name, ": list them with `chainfleet get ", word,
                                                     kind == "alias" ? "es`" : "s`")),
                    reason);
}

absl::Status NoSuchSegment(const std::string& job, const std::string& object) {
  return WithReason(absl::NotFoundError(absl::StrCat("job ", job, " has no segment ", object,
                                                     ": list them with `chainfleet get draws ", job, "`")),
                    "SEGMENT_NOT_FOUND");
}

}  // namespace chainfleet
