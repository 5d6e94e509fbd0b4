// Splits a job with a sweep into the jobs of its points. Point p has chains p * spec.chains up to (p + 1) * spec.chains
// - 1. Without a sweep there is one point, the job itself.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/job_spec.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

// Returns the number of chains of all points together.
int32_t NumChains(const JobSpec& spec);

// Returns the point of a chain. Without a sweep, also valid for chains that were added after this copy was made.
int32_t PointOf(const JobSpec& spec, int32_t chain);

// Returns K if the chains start at K points in turn and two or more share each: chain i is of superchain i mod K.
// Otherwise 0.
int64_t NumSuperchains(const JobSpec& spec, int64_t num_parameters);
int64_t NumSuperchains(const JobPlan& plan);

// Returns the job of one point: its values set, no sweep. Code about one posterior takes this job.
JobSpec SpecAt(const JobSpec& spec, int32_t point);

// Returns `spec` without the model and the starts, which may be megabytes and are the same at all points: SpecAt copies
// the rest for each.
JobSpec WithoutContents(JobSpec spec);

// Returns the violations outside the model, the name and the sweep, that is, in the fields that a sweep point may
// change. `valid_model`: Validate(spec.model) found nothing. Defined in job_spec.cc.
std::vector<FieldViolation> ValidateBesidesModel(const JobSpec& spec, bool valid_model);

// Returns violations: too many points or chains; a number that the job lacks, at sweep.NAME; a value out of bounds or a
// duplicate, at sweep.NAME[i]. REQUIRES: the rest of the job is valid.
std::vector<FieldViolation> ValidateSweep(const JobSpec& spec);

}  // namespace chainfleet
