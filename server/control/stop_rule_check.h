// Decides whether a sweep point has enough draws by the stop rule of its job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/domain/stop_rule.h"
#include "server/control/trace_table.h"

namespace chainfleet {

// The data about one point that the rule reads.
struct PointEvidence {
  std::vector<int32_t> chains;             // chains that are not stopped, by index
  int64_t num_draws = 0;                   // committed draws of all its chains
  const PointDiagnosis* traces = nullptr;  // null if unknown
};

// Returns the reason, or nullopt while the point does not have enough: "R-hat 1.004 is below 1.01, ESS 412 above 400,
// over 250 values of each of 4 chains". A rule on traces must hold for every quantity that changes and is not
// descriptive. It covers every continuing chain except those without room in the trace table, and the traces of ended
// chains that the table still has. Each chain needs kFewestValuesToStop values or more. An R-hat of NaN, or none, is
// not below any bound.
std::optional<std::string> WhyEnough(const StopRuleSpec& rule, const PointEvidence& point);

}  // namespace chainfleet
