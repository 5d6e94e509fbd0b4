// Estimates the bytes of jobs in messages without protobuf, so that replies with several jobs stay below the bound.
#pragma once

#include <cstdint>

#include "core/domain/job_spec.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

// An upper bound on the bytes of a message with the spec. Linear in its lists, cheap for numbers.
int64_t WireBytes(const JobSpec& spec);

// The same of a data set with its shards, and of all that a worker is told of a job.
int64_t WireBytes(const Dataset& dataset);
int64_t WireBytes(const JobPlan& plan);

}  // namespace chainfleet
