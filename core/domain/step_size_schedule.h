// The step size and the temperature of every update, from the schedule of a job. Pure.
#pragma once

#include <cstdint>

#include "core/domain/job_spec.h"

namespace chainfleet {

// Immutable value. Thread-safe.
class StepSizeSchedule {
 public:
  // `num_examples` N converts a learning rate h on the mean loss to alpha = h / N on the full-data potential.
  StepSizeSchedule(const JobSpec& spec, const StepPlan& plan, int64_t num_examples);

  // alpha of update `t` (from 0), t < plan.training_steps; formulas: core/domain/schedule_spec.h.
  double StepSize(int64_t t) const;

  // T of update `t`: 0 in the noise-free part of a cycle.
  double Temperature(int64_t t) const;

 private:
  ScheduleSpec spec_;
  StepPlan plan_;
  double scale_;
  double temperature_;
  int64_t noise_free_steps_;  // at the start of each cycle
};

}  // namespace chainfleet
