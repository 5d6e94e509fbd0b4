// Maps jobs of jobs.proto to and from core/domain. A job file is the proto3 JSON of v1::JobSpec, so violations have the
// paths of the file. Rejects only what the domain struct cannot express; Validate() of core/domain checks the rest.
#pragma once

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/status.h"
#include "core/domain/chain_state.h"
#include "core/domain/job_spec.h"

namespace chainfleet {

// Writes every default.
v1::JobSpec ToProto(const JobSpec& spec);
// INVALID_ARGUMENT names every wrong field: a choice without a case, an unknown name.
absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& proto);

v1::JobSpec::Model ToProto(const ModelSpec& model);
absl::StatusOr<ModelSpec> FromProto(const v1::JobSpec::Model& proto);
// The likelihood is next to the model on the wire, and part of the model in the domain.
v1::JobSpec::Likelihood ToProto(const LikelihoodKind& likelihood);
absl::StatusOr<LikelihoodKind> FromProto(const v1::JobSpec::Likelihood& proto);

v1::Job::Intent ToProto(JobIntent intent);
absl::StatusOr<JobIntent> FromProto(v1::Job::Intent proto);
v1::Job::State ToProto(JobState state);
// Parses the name of a Job.State, such as "RUNNING".
absl::StatusOr<JobState> JobStateFromString(const std::string& name);

}  // namespace chainfleet
