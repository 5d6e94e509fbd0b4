#include "core/domain/init_spec.h"

#include "absl/strings/str_cat.h"

namespace chainfleet {

std::vector<FieldViolation> ValidateForSize(const InitSpec& init, int64_t num_parameters) {
  const auto size = static_cast<int64_t>(init.theta.size());
  if (size <= 1 || (num_parameters > 0 && size % num_parameters == 0)) return {};
  return {{"init.theta", absl::StrCat("has ", size, " numbers; the model has ", num_parameters,
                                      " parameters: give 1 number, ", num_parameters, ", or a multiple")}};
}

}  // namespace chainfleet
