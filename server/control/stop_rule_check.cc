#include "server/control/stop_rule_check.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace chainfleet {
namespace {

bool LooksAtEnough(const PointEvidence& point) {
  if (point.traces == nullptr || point.traces->values < kFewestValuesToStop) return false;
  return std::ranges::all_of(point.chains, [&traces = *point.traces](int32_t chain) {
    return std::ranges::binary_search(traces.looked_at, chain) ||
           std::ranges::binary_search(traces.without_room, chain);
  });
}

}  // namespace

std::optional<std::string> WhyEnough(const StopRuleSpec& rule, const PointEvidence& point) {
  if (rule.max_draws && point.num_draws >= *rule.max_draws) {
    return absl::StrCat("max_draws ", *rule.max_draws, " is reached: ", point.num_draws, " committed");
  }
  if (!rule.looks_at_traces() || !LooksAtEnough(point)) return std::nullopt;
  double rhat = -std::numeric_limits<double>::infinity(), ess = std::numeric_limits<double>::infinity();
  bool judged = false;
  for (const Diagnostic& found : point.traces->diagnostics) {
    if (found.descriptive) continue;
    judged = true;
    // Written so that every comparison with NaN fails the rule.
    if (rule.rhat_below && !(found.rhat < *rule.rhat_below)) return std::nullopt;
    if (rule.ess_above && !(found.ess_bulk > *rule.ess_above && found.ess_tail > *rule.ess_above)) return std::nullopt;
    rhat = std::max(rhat, found.rhat);
    ess = std::min({ess, found.ess_bulk, found.ess_tail});
  }
  if (!judged) return std::nullopt;
  std::vector<std::string> parts;
  if (rule.rhat_below) parts.push_back(absl::StrFormat("R-hat %.6g is below %g", rhat, *rule.rhat_below));
  if (rule.ess_above) {
    parts.push_back(absl::StrFormat("ESS %.6g %sabove %g", ess, rule.rhat_below ? "" : "is ", *rule.ess_above));
  }
  return absl::StrCat(absl::StrJoin(parts, ", "), ", over ", point.traces->values, " values of each of ",
                      point.traces->looked_at.size(), " chains");
}

}  // namespace chainfleet
