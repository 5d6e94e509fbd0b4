// Jobs of jobs.proto <-> core/domain. A job file is the proto3 JSON of v1::JobSpec, so violation paths are those of the
// file. Only what the domain struct cannot express is refused here; Validate() of core/domain says the rest.
#pragma once

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/status.h"
#include "core/domain/chain_state.h"
#include "core/domain/job_spec.h"

namespace chainfleet {

// With every default written out.
v1::JobSpec ToProto(const JobSpec& spec);
// INVALID_ARGUMENT naming every wrong field: a choice without a case, an unknown word.
absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& proto);

v1::JobSpec::Model ToProto(const ModelSpec& model);
absl::StatusOr<ModelSpec> FromProto(const v1::JobSpec::Model& proto);
// Beside the model on the wire, part of it in the domain.
v1::JobSpec::Likelihood ToProto(const LikelihoodKind& likelihood);
absl::StatusOr<LikelihoodKind> FromProto(const v1::JobSpec::Likelihood& proto);

v1::Job::Intent ToProto(JobIntent intent);
absl::StatusOr<JobIntent> FromProto(v1::Job::Intent proto);
v1::Job::State ToProto(JobState state);
absl::StatusOr<JobState> FromProto(v1::Job::State proto);
// The name of a Job.State: "RUNNING".
absl::StatusOr<JobState> JobStateFromString(const std::string& name);

}  // namespace chainfleet
