#include "core/domain/corruption.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/limits.h"
#include "core/domain/fields.h"

namespace chainfleet {

std::vector<std::string> CorruptionNames() {
  const auto names = EnumNames(CorruptionKind());
  return {names.begin(), names.end()};
}

std::vector<FieldViolation> Validate(const Corruption& corruption) {
  std::vector<FieldViolation> violations;
  if (!EnumFromName<CorruptionKind>(corruption.name)) {
    violations.push_back({"corruption.name", absl::StrCat("must be one of ", AllEnumNames<CorruptionKind>(), ", is \"",
                                                          corruption.name, "\"")});
  }
  const std::string message = OutOfBounds(corruption.severity, Between(1, limits::kMaxCorruptionSeverity));
  if (!message.empty()) violations.push_back({"corruption.severity", message});
  return violations;
}

std::vector<FieldViolation> ValidateForImages(const Corruption& corruption, const std::vector<int64_t>& input_shape) {
  if (input_shape.size() == 3 && std::min(input_shape[1], input_shape[2]) >= kMinCorruptedSide) return {};
  return {{"corruption", absl::StrCat(corruption.name, " changes images [channels, height, width] of at least ",
                                      kMinCorruptedSide, " by ", kMinCorruptedSide,
                                      " pixels, the data set has inputs [", absl::StrJoin(input_shape, ", "), "]")}};
}

}  // namespace chainfleet
