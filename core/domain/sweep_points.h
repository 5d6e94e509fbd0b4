// A job with a sweep as the jobs of its points. Point p has the chains p * spec.chains and the spec.chains - 1 after
// it. Without a sweep there is one point, the job itself.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/job_spec.h"

namespace chainfleet {

// Of all points.
int32_t NumChains(const JobSpec& spec);

// The point that a chain samples. Without a sweep also of a chain that was added after this copy of the job was made.
int32_t PointOf(const JobSpec& spec, int32_t chain);

// The job of one point alone: its numbers put in, no sweep. Whatever is about one posterior takes this.
JobSpec SpecAt(const JobSpec& spec, int32_t point);

// What Validate says of all but the model, the name and the sweep: what a point of a sweep may change. `valid_model`:
// Validate(spec.model) found nothing. Defined in job_spec.cc.
std::vector<FieldViolation> ValidateBesidesModel(const JobSpec& spec, bool valid_model);

// Too many points or chains; a number that the job lacks, at sweep.NAME; a value out of its bounds or given twice, at
// sweep.NAME[i]. The rest of the job is taken to be valid.
std::vector<FieldViolation> ValidateSweep(const JobSpec& spec);

}  // namespace chainfleet
