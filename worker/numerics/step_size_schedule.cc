#include "worker/numerics/step_size_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace chainfleet {

StepSizeSchedule::StepSizeSchedule(const ScheduleSpec& spec, int64_t total_steps, int64_t num_examples)
    : spec_(spec),
      steps_per_cycle_(std::max<int64_t>(1, total_steps / spec.cycles())),
      scale_(spec.scale == StepScale::kLearningRate ? 1.0 / static_cast<double>(num_examples) : 1.0) {}

double StepSizeSchedule::StepSize(int64_t t) const {
  if (const auto* constant = std::get_if<ConstantSchedule>(&spec_.kind)) return scale_ * constant->value;
  const auto& cyclical = std::get<CyclicalSchedule>(spec_.kind);
  const double phase = static_cast<double>(t % steps_per_cycle_) / static_cast<double>(steps_per_cycle_);
  return scale_ *
         (cyclical.final + 0.5 * (cyclical.initial - cyclical.final) * (std::cos(std::numbers::pi * phase) + 1.0));
}

}  // namespace chainfleet
