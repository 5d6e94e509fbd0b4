#include "core/domain/prior_spec.h"

namespace chainfleet {

std::vector<FieldViolation> Validate(const PriorSpec& prior) {
  std::vector<FieldViolation> violations;
  std::visit([&](const auto& p) { CheckBounds(p, std::string("prior.") + p.kName, &violations); }, prior.kind);
  return violations;
}

}  // namespace chainfleet
