#include "core/domain/flatness.h"

#include "core/base/limits.h"
#include "core/domain/fields.h"

namespace chainfleet {

std::vector<FieldViolation> Validate(const FlatnessPlan& plan) {
  std::vector<FieldViolation> violations;
  const auto check = [&](const char* path, double value, const Bounds& bounds) {
    const std::string message = OutOfBounds(value, bounds);
    if (!message.empty()) violations.push_back({path, message});
  };
  check("flatness.fisher_points", plan.fisher_points, Between(1, limits::kMaxFisherPoints));
  check("flatness.line_points", plan.line_points, Between(2, limits::kMaxLinePoints));
  check("flatness.radius", plan.radius, Above(0));
  return violations;
}

}  // namespace chainfleet
