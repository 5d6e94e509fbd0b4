// The step size alpha of every update, from the schedule of a job. Pure.
#pragma once

#include <cstdint>

#include "core/domain/job_spec.h"

namespace chainfleet {

// Immutable value. Thread-safe.
class StepSizeSchedule {
 public:
  // `num_examples` N turns a learning rate h on the mean loss into alpha = h / N on the full-data potential.
  StepSizeSchedule(const ScheduleSpec& spec, int64_t total_steps, int64_t num_examples);

  // alpha of update `t` (from 0). Constant, or final + (initial - final)/2 (cos(pi (t mod c)/c) + 1) with c =
  // floor(total_steps / cycles) (cyclical SG-MCMC, Zhang et al., ICLR 2020).
  double StepSize(int64_t t) const;

 private:
  ScheduleSpec spec_;
  int64_t steps_per_cycle_;
  double scale_;
};

}  // namespace chainfleet
