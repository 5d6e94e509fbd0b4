#include "core/domain/step_size_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace chainfleet {
namespace {

double Value(const ConstantSchedule& s, const StepPlan&, int64_t) { return s.value; }

double Value(const LinearSchedule& s, const StepPlan& plan, int64_t t) {
  return s.initial + (s.final - s.initial) * static_cast<double>(t) / static_cast<double>(plan.training_steps);
}

double Value(const ExponentialSchedule& s, const StepPlan& plan, int64_t t) {
  return s.initial * std::pow(s.final / s.initial, static_cast<double>(t) / static_cast<double>(plan.training_steps));
}

double Value(const StepSchedule& s, const StepPlan& plan, int64_t t) {
  return static_cast<double>(t) < s.at * static_cast<double>(plan.training_steps) ? s.initial : s.initial * s.factor;
}

double Value(const CyclicalSchedule& s, const StepPlan& plan, int64_t t) {
  const double phase = static_cast<double>(t % plan.steps_per_cycle) / static_cast<double>(plan.steps_per_cycle);
  return s.final + 0.5 * (s.initial - s.final) * (std::cos(std::numbers::pi * phase) + 1.0);
}

double Value(const SwagSchedule& s, const StepPlan& plan, int64_t t) {
  const auto epoch = static_cast<double>(t / plan.steps_per_epoch);
  const double part = epoch / static_cast<double>(s.start_epoch);
  if (part <= 0.5) return s.initial;
  if (part >= 0.9) return s.final;
  return s.initial + (s.final - s.initial) * (part - 0.5) / 0.4;
}

double Value(const PolynomialSchedule& s, const StepPlan&, int64_t t) {
  return s.initial * std::pow(1 + static_cast<double>(t) / s.offset, -s.power);
}

}  // namespace

StepSizeSchedule::StepSizeSchedule(const JobSpec& spec, const StepPlan& plan, int64_t num_examples)
    : spec_(spec.schedule),
      plan_(plan),
      scale_(spec.schedule.scale == StepScale::kLearningRate ? 1.0 / static_cast<double>(num_examples) : 1.0),
      temperature_(spec.temperature),
      noise_free_steps_(static_cast<int64_t>(
          std::llround(spec.sampler.noise_free_fraction() * static_cast<double>(plan.steps_per_cycle)))) {
  plan_.training_steps = std::max<int64_t>(1, plan_.training_steps);  // without training, the first value
}

double StepSizeSchedule::StepSize(int64_t t) const {
  t = std::min(t, plan_.training_steps - 1);  // networks sampled after training have its last step size
  return scale_ * std::visit([&](const auto& schedule) { return Value(schedule, plan_, t); }, spec_.kind);
}

double StepSizeSchedule::Temperature(int64_t t) const {
  return t % plan_.steps_per_cycle < noise_free_steps_ ? 0 : temperature_;
}

}  // namespace chainfleet
