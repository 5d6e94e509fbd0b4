// A job with a sweep as the jobs of its points. Point p has the chains p * spec.chains and the spec.chains - 1 after
// it. Without a sweep there is one point, the job itself.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/job_spec.h"

namespace chainfleet {

// The chains of all points together.
int32_t NumChains(const JobSpec& spec);

// The point that a chain samples. Without a sweep, valid also for chains added after this copy of the job was made.
int32_t PointOf(const JobSpec& spec, int32_t chain);

// The job of one point alone: its values set, no sweep. Code about one posterior takes this job.
JobSpec SpecAt(const JobSpec& spec, int32_t point);

// The violations that Validate finds outside the model, the name and the sweep, that is, in all that a point of a sweep
// may change. `valid_model`: Validate(spec.model) found nothing. Defined in job_spec.cc.
std::vector<FieldViolation> ValidateBesidesModel(const JobSpec& spec, bool valid_model);

// Violations: too many points or chains; a number that the job lacks, at sweep.NAME; a value out of its bounds or given
// twice, at sweep.NAME[i]. The rest of the job is taken to be valid.
std::vector<FieldViolation> ValidateSweep(const JobSpec& spec);

}  // namespace chainfleet
