#include "core/domain/fields.h"

namespace chainfleet {

std::string OutOfBounds(double value, const Bounds& bounds) {
  const bool above = bounds.open_least ? value > bounds.least : value >= bounds.least;
  const bool below = bounds.open_most ? value < bounds.most : value <= bounds.most;
  if (std::isfinite(value) && above && below) return "";
  std::string rule;
  if (std::isfinite(bounds.least)) rule = absl::StrCat(bounds.open_least ? "above " : "at least ", bounds.least);
  if (std::isfinite(bounds.most)) {
    absl::StrAppend(&rule, rule.empty() ? "" : " and ", bounds.open_most ? "below " : "at most ", bounds.most);
  }
  const char* finite = std::isfinite(value) ? "" : rule.empty() ? "finite" : "finite and ";
  return absl::StrCat("must be ", finite, rule, ", is ", value);
}

}  // namespace chainfleet
