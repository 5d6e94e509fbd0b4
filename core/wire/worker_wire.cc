#include "core/wire/worker_wire.h"

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/utf8.h"
#include "core/wire/field_wire.h"
#include "core/wire/jobs_wire.h"

namespace chainfleet {
namespace {

// A reply may hold the reasons of all chains of a job, so each reason is cut.
std::string Shortened(const std::string& reason) { return std::string(WholeCharacters(reason, 1024)); }

}  // namespace

v1::SynchronizeRequest ToProto(const SynchronizeRequest& request) { return Written<v1::SynchronizeRequest>(request); }

absl::StatusOr<SynchronizeRequest> FromProto(const v1::SynchronizeRequest& proto) {
  CHAINFLEET_ASSIGN_OR_RETURN(auto request, Parsed<SynchronizeRequest>(proto));
  for (ReleasedChain& released : request.released) released.reason = Shortened(released.reason);
  return request;
}

v1::JobPlan ToProto(const JobPlan& plan) {
  auto proto = Written<v1::JobPlan>(plan);
  *proto.mutable_spec() = ToProto(plan.spec);
  return proto;
}

absl::StatusOr<JobPlan> FromProto(const v1::JobPlan& proto) {
  CHAINFLEET_ASSIGN_OR_RETURN(auto plan, Parsed<JobPlan>(proto));
  CHAINFLEET_ASSIGN_OR_RETURN(plan.spec, FromProto(proto.spec()));
  return plan;
}

v1::SynchronizeReply ToProto(const SynchronizeReply& reply) {
  auto proto = Written<v1::SynchronizeReply>(reply);
  std::set<std::string> planned;
  for (const Grant& grant : reply.grants) {
    if (planned.insert(grant.plan->job).second) *proto.add_plans() = ToProto(*grant.plan);
    *proto.add_grants() = Written<v1::Grant>(grant);
    proto.mutable_grants()->rbegin()->set_job(grant.plan->job);
  }
  return proto;
}

absl::StatusOr<SynchronizeReply> FromProto(const v1::SynchronizeReply& proto) {
  CHAINFLEET_ASSIGN_OR_RETURN(auto reply, Parsed<SynchronizeReply>(proto));
  std::map<std::string, std::shared_ptr<const JobPlan>> plans;
  for (const auto& plan : proto.plans()) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto parsed, FromProto(plan));
    plans[plan.job()] = std::make_shared<const JobPlan>(std::move(parsed));
  }
  for (const auto& message : proto.grants()) {
    const auto plan = plans.find(message.job());
    if (plan == plans.end()) {
      return InvalidFields({{"grants.job", absl::StrCat("no plan for job ", message.job(), " in the reply")}});
    }
    CHAINFLEET_ASSIGN_OR_RETURN(auto grant, Parsed<Grant>(message));
    grant.plan = plan->second;
    reply.grants.push_back(std::move(grant));
  }
  return reply;
}

v1::CommitProgressRequest ToProto(const ProgressCommit& commit) { return Written<v1::CommitProgressRequest>(commit); }

absl::StatusOr<ProgressCommit> FromProto(const v1::CommitProgressRequest& proto) {
  CHAINFLEET_ASSIGN_OR_RETURN(auto commit, Parsed<ProgressCommit>(proto));
  commit.reason = Shortened(commit.reason);
  if (commit.trace.well_formed()) return commit;
  return InvalidFields({{"trace.values", absl::StrCat("needs one value of each of up to ", kMostTraceQuantities,
                                                      " quantities at each step")}});
}

}  // namespace chainfleet
