// Whether a point has drawn enough by the stop rule of its job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/domain/stop_rule.h"
#include "server/control/trace_table.h"

namespace chainfleet {

// What is known of one point.
struct PointEvidence {
  std::vector<int32_t> chains;             // those that go on, by index
  int64_t num_draws = 0;                   // committed, of all its chains
  const PointDiagnosis* traces = nullptr;  // null: not known now
};

// "R-hat 1.004 is below 1.01, ESS 412 above 400, over 250 values of each of 4 chains"; nothing while it has not enough.
// A rule on traces holds over every quantity that changes and is not descriptive, and over every chain that goes on,
// but for those that the trace table has no room for, and what it has of those that ended: after a restart that is
// nothing, and nothing comes. Each has kFewestValuesToStop values or more. R-hat that is NaN is not below.
std::optional<std::string> WhyEnough(const StopRuleSpec& rule, const PointEvidence& point);

}  // namespace chainfleet
