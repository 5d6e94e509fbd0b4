// The rule that ends a job early, once it has enough draws.
#pragma once

#include <cstdint>
#include <optional>

#include "core/domain/fields.h"

namespace chainfleet {

// The rule applies to each sweep point separately, over every traced quantity of its chains. The rule is met when all
// set conditions on traces hold, or when max_draws are committed. Without a condition, the chains run all steps.
struct StopRuleSpec {
  std::optional<double> rhat_below;  // bound on the largest R-hat; needs two chains or more
  std::optional<double> ess_above;   // bound on the smallest bulk or tail effective sample size
  std::optional<int64_t> max_draws;  // draws of all chains of the point together
  // bound on the largest nested R-hat; needs superchains (core/domain/sweep_points.h)
  std::optional<double> nested_rhat_below;
  static void Fields(auto& self, auto&& visit) {
    visit("rhat_below", self.rhat_below, Above(1));
    visit("ess_above", self.ess_above, Above(0));
    visit("max_draws", self.max_draws, AtLeast(1));
    visit("nested_rhat_below", self.nested_rhat_below, Above(1));
  }
  bool looks_at_traces() const { return rhat_below || ess_above || nested_rhat_below; }
  bool any() const { return looks_at_traces() || max_draws; }
  bool operator==(const StopRuleSpec&) const = default;
};

// The rule is not evaluated with fewer traced values of a chain.
inline constexpr int64_t kFewestValuesToStop = 100;

}  // namespace chainfleet
