#include "core/domain/schedule_spec.h"

#include <cmath>

namespace chainfleet {
namespace {

// A constant is written as a number, so its path has no name of its own.
void Check(const ConstantSchedule& schedule, const std::string& path, std::vector<FieldViolation>* violations) {
  const std::string message = OutOfBounds(schedule.value, AtLeast(0));
  if (!message.empty()) violations->push_back({path, message});
}

template <typename Schedule>
void Check(const Schedule& schedule, const std::string& path, std::vector<FieldViolation>* violations) {
  CheckBounds(schedule, path, violations);
}

}  // namespace

std::vector<FieldViolation> Validate(const ScheduleSpec& schedule) {
  std::vector<FieldViolation> violations;
  const std::string root = schedule.scale == StepScale::kLearningRate ? "learning_rate." : "step_size.";
  std::visit([&](const auto& kind) { Check(kind, root + kind.kName, &violations); }, schedule.kind);
  const auto* cyclical = std::get_if<CyclicalSchedule>(&schedule.kind);
  // A value outside its own bounds is reported only once.
  if (cyclical != nullptr && cyclical->initial > 0 && std::isfinite(cyclical->final) &&
      cyclical->final > cyclical->initial) {
    violations.push_back(
        {root + "cyclical.final", absl::StrCat("must lie between 0 and initial, is ", cyclical->final)});
  }
  return violations;
}

}  // namespace chainfleet
