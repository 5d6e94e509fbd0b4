// Scheduling settings of a job: its tier, and the number of chains that must succeed.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/limits.h"
#include "core/domain/fields.h"

namespace chainfleet {

// Chains of a higher tier are granted first, and preempt running chains of a lower tier.
enum class Priority { kLow, kNormal, kHigh };
inline std::initializer_list<const char*> EnumNames(Priority) {
  static constexpr std::initializer_list<const char*> kNames = {"low", "normal", "high"};
  return kNames;
}

struct SchedulingSpec {
  Priority priority = Priority::kNormal;
  // The number of chains of each sweep point that must succeed. The point's other chains then end at their current step
  // as SUCCEEDED, and their draws are served. Not set: all chains must succeed.
  std::optional<int64_t> success_chains;
  static void Fields(auto& self, auto&& visit) {
    visit("priority", self.priority);
    visit("success_chains", self.success_chains, Between(1, limits::kMaxChainsPerJob));
  }
  bool operator==(const SchedulingSpec&) const = default;
};

}  // namespace chainfleet
