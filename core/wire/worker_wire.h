// Maps Synchronize and CommitProgress of worker.proto to and from core/domain, for both sides of CoordinatorPort.
#pragma once

#include <string>

#include "chainfleet/v1/worker.pb.h"
#include "core/base/status.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

v1::SynchronizeRequest ToProto(const SynchronizeRequest& request);
absl::StatusOr<SynchronizeRequest> FromProto(const v1::SynchronizeRequest& proto);

// Writes each job's plan once, for all grants of the job.
v1::SynchronizeReply ToProto(const SynchronizeReply& reply);
// INVALID_ARGUMENT also if a grant names a job without a plan.
absl::StatusOr<SynchronizeReply> FromProto(const v1::SynchronizeReply& proto);

v1::JobPlan ToProto(const JobPlan& plan);
absl::StatusOr<JobPlan> FromProto(const v1::JobPlan& proto);

v1::CommitProgressRequest ToProto(const ProgressCommit& commit);
absl::StatusOr<ProgressCommit> FromProto(const v1::CommitProgressRequest& proto);

}  // namespace chainfleet
