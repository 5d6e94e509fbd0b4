// Estimates the bytes of jobs in messages without protobuf, so that replies with several jobs stay below the bound.
#pragma once

#include <cstdint>

#include "core/domain/job_spec.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

// Returns an upper bound on the bytes of a message with the spec. Linear in the spec's lists, cheap for numbers.
int64_t WireBytes(const JobSpec& spec);

// Returns upper bounds for a data set with its shards, a stored model, and for the job plan that a worker receives.
int64_t WireBytes(const Dataset& dataset);
int64_t WireBytes(const StoredModel& model);
int64_t WireBytes(const JobPlan& plan);

}  // namespace chainfleet
