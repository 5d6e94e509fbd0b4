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
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double rhat = -kInfinity, nested = -kInfinity, ess = kInfinity;
  bool judged = false;
  for (const Diagnostic& found : point.traces->diagnostics) {
    if (found.descriptive) continue;
    judged = true;
    // Written so that every comparison with NaN fails the rule.
    if (rule.rhat_below && !(found.rhat < *rule.rhat_below)) return std::nullopt;
    const double found_nested = found.nested_rhat.value_or(kInfinity);
    if (rule.nested_rhat_below && !(found_nested < *rule.nested_rhat_below)) return std::nullopt;
    if (rule.ess_above && !(found.ess_bulk > *rule.ess_above && found.ess_tail > *rule.ess_above)) return std::nullopt;
    rhat = std::max(rhat, found.rhat);
    nested = std::max(nested, found_nested);
    ess = std::min({ess, found.ess_bulk, found.ess_tail});
  }
  if (!judged) return std::nullopt;
  std::vector<std::string> parts;
  const auto add = [&parts](const char* name, double value, const char* side, double bound) {
    parts.push_back(absl::StrFormat("%s %.6g %s%s %g", name, value, parts.empty() ? "is " : "", side, bound));
  };
  if (rule.rhat_below) add("R-hat", rhat, "below", *rule.rhat_below);
  if (rule.nested_rhat_below) add("nested R-hat", nested, "below", *rule.nested_rhat_below);
  if (rule.ess_above) add("ESS", ess, "above", *rule.ess_above);
  return absl::StrCat(absl::StrJoin(parts, ", "), ", over ", point.traces->values, " values of each of ",
                      point.traces->looked_at.size(), " chains");
}

}  // namespace chainfleet
