#include "core/wire/worker_wire.h"

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/wire/jobs_wire.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

// A reply may tell the reasons of all chains of a job.
std::string Shortened(const std::string& reason) {
  constexpr size_t kMostBytes = 1024;
  if (reason.size() <= kMostBytes) return reason;
  size_t end = kMostBytes;
  while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xc0) == 0x80) --end;  // not inside of a character
  return reason.substr(0, end);
}

google::protobuf::Duration DurationToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return proto;
}

absl::Duration DurationFromProto(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

absl::StatusOr<ReleasedChain> ReleasedFromProto(const v1::SynchronizeRequest::ReleasedChain& proto) {
  if (!v1::SynchronizeRequest::ReleasedChain::Why_IsValid(proto.why())) {
    return InvalidFields({{"released.why", absl::StrCat("unknown value ", static_cast<int>(proto.why()))}});
  }
  return ReleasedChain{.chain = FromProto(proto.chain()),
                       .lease_epoch = proto.lease_epoch(),
                       .why = static_cast<ReleasedChain::Why>(proto.why()),
                       .reason = Shortened(proto.reason())};
}

absl::StatusOr<StopOrder> StopFromProto(const v1::SynchronizeReply::StopOrder& proto) {
  if (!v1::SynchronizeReply::StopOrder::How_IsValid(proto.how())) {
    return InvalidFields({{"stop.how", absl::StrCat("unknown value ", static_cast<int>(proto.how()))}});
  }
  return StopOrder{.chain = FromProto(proto.chain()),
                   .lease_epoch = proto.lease_epoch(),
                   .how = static_cast<StopOrder::How>(proto.how())};
}

v1::Grant GrantToProto(const Grant& grant) {
  v1::Grant proto;
  *proto.mutable_chain() = ToProto(grant.chain);
  proto.set_lease_epoch(grant.lease_epoch);
  proto.set_job(grant.plan->job);
  proto.set_step(grant.progress.step);
  proto.set_num_draws(grant.progress.num_draws);
  proto.set_last_digest(grant.progress.last_digest);
  if (grant.progress.resume_point) *proto.mutable_resume_point() = ToProto(*grant.progress.resume_point);
  return proto;
}

Grant GrantFromProto(const v1::Grant& proto, std::shared_ptr<const JobPlan> plan) {
  Grant grant{.chain = FromProto(proto.chain()),
              .lease_epoch = proto.lease_epoch(),
              .plan = std::move(plan),
              .progress = {.step = proto.step(),
                           .num_draws = proto.num_draws(),
                           .last_digest = proto.last_digest(),
                           .resume_point = {}}};
  if (proto.has_resume_point()) grant.progress.resume_point = FromProto(proto.resume_point());
  return grant;
}

v1::Trace TraceToProto(const ChainTrace& trace) {
  v1::Trace proto;
  proto.set_point(trace.point);
  for (const std::string& quantity : trace.quantities) proto.add_quantities(quantity);
  proto.mutable_steps()->Add(trace.steps.begin(), trace.steps.end());
  proto.mutable_values()->Add(trace.values.begin(), trace.values.end());
  return proto;
}

absl::StatusOr<ChainTrace> TraceFromProto(const v1::Trace& proto) {
  ChainTrace trace{.point = proto.point(),
                   .quantities = {proto.quantities().begin(), proto.quantities().end()},
                   .steps = {proto.steps().begin(), proto.steps().end()},
                   .values = {proto.values().begin(), proto.values().end()}};
  if (trace.well_formed()) return trace;
  return InvalidFields({{"trace.values", "needs one value of each of up to 32 quantities at each step"}});
}

}  // namespace

v1::SynchronizeRequest ToProto(const SynchronizeRequest& request) {
  v1::SynchronizeRequest proto;
  proto.set_protocol_version(request.protocol_version);
  proto.set_worker(request.worker);
  proto.set_incarnation(request.incarnation);
  proto.set_seq(request.seq);
  proto.set_host(request.host);
  proto.set_metrics_address(request.metrics_address);
  proto.set_store_incarnation(request.store_incarnation);
  for (const DeviceReport& device : request.devices) {
    auto* added = proto.add_devices();
    added->set_name(device.name);
    added->set_memory_bytes(device.memory_bytes);
    added->set_chain_slots(device.chain_slots);
  }
  for (const HeldChain& held : request.chains) {
    auto* added = proto.add_chains();
    *added->mutable_chain() = ToProto(held.chain);
    added->set_lease_epoch(held.lease_epoch);
    added->set_step(held.step);
    *added->mutable_stats() = ToProto(held.stats);
  }
  for (const ReleasedChain& released : request.released) {
    auto* added = proto.add_released();
    *added->mutable_chain() = ToProto(released.chain);
    added->set_lease_epoch(released.lease_epoch);
    added->set_why(static_cast<v1::SynchronizeRequest::ReleasedChain::Why>(released.why));
    added->set_reason(released.reason);
  }
  proto.set_draining(request.draining);
  return proto;
}

absl::StatusOr<SynchronizeRequest> FromProto(const v1::SynchronizeRequest& proto) {
  SynchronizeRequest request;
  request.protocol_version = proto.protocol_version();
  request.worker = proto.worker();
  request.incarnation = proto.incarnation();
  request.seq = proto.seq();
  request.host = proto.host();
  request.metrics_address = proto.metrics_address();
  request.store_incarnation = proto.store_incarnation();
  for (const auto& device : proto.devices()) {
    request.devices.push_back({device.name(), device.memory_bytes(), device.chain_slots()});
  }
  for (const auto& held : proto.chains()) {
    request.chains.push_back({FromProto(held.chain()), held.lease_epoch(), held.step(), FromProto(held.stats())});
  }
  for (const auto& released : proto.released()) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto chain, ReleasedFromProto(released));
    request.released.push_back(std::move(chain));
  }
  request.draining = proto.draining();
  return request;
}

v1::JobPlan ToProto(const JobPlan& plan) {
  v1::JobPlan proto;
  proto.set_job(plan.job);
  *proto.mutable_spec() = ToProto(plan.spec);
  if (plan.dataset) *proto.mutable_dataset() = ToProto(*plan.dataset);
  *proto.mutable_normalisation() = ToProto(plan.normalisation);
  *proto.mutable_target_units() = ToProto(plan.target_units);
  if (plan.module) *proto.mutable_module() = ToProto(*plan.module);
  return proto;
}

absl::StatusOr<JobPlan> FromProto(const v1::JobPlan& proto) {
  JobPlan plan;
  plan.job = proto.job();
  CHAINFLEET_ASSIGN_OR_RETURN(plan.spec, FromProto(proto.spec()));
  if (proto.has_dataset()) {
    CHAINFLEET_ASSIGN_OR_RETURN(plan.dataset, FromProto(proto.dataset()));
  }
  plan.normalisation = FromProto(proto.normalisation());
  if (proto.has_target_units()) plan.target_units = FromProto(proto.target_units());
  if (proto.has_module()) plan.module = FromProto(proto.module());
  return plan;
}

v1::SynchronizeReply ToProto(const SynchronizeReply& reply) {
  v1::SynchronizeReply proto;
  proto.set_generation(reply.generation);
  proto.set_store_incarnation(reply.store_incarnation);
  std::set<std::string> planned;
  for (const Grant& grant : reply.grants) {
    if (planned.insert(grant.plan->job).second) *proto.add_plans() = ToProto(*grant.plan);
    *proto.add_grants() = GrantToProto(grant);
  }
  for (const ChainId& chain : reply.keep) *proto.add_keep() = ToProto(chain);
  for (const StopOrder& stop : reply.stop) {
    auto* added = proto.add_stop();
    *added->mutable_chain() = ToProto(stop.chain);
    added->set_lease_epoch(stop.lease_epoch);
    added->set_how(static_cast<v1::SynchronizeReply::StopOrder::How>(stop.how));
  }
  *proto.mutable_next_sync_in() = DurationToProto(reply.next_sync_in);
  *proto.mutable_lease_ttl() = DurationToProto(reply.lease_ttl);
  proto.set_drain(reply.drain);
  return proto;
}

absl::StatusOr<SynchronizeReply> FromProto(const v1::SynchronizeReply& proto) {
  SynchronizeReply reply;
  reply.generation = proto.generation();
  reply.store_incarnation = proto.store_incarnation();
  std::map<std::string, std::shared_ptr<const JobPlan>> plans;
  for (const auto& plan : proto.plans()) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto parsed, FromProto(plan));
    plans[plan.job()] = std::make_shared<const JobPlan>(std::move(parsed));
  }
  for (const auto& grant : proto.grants()) {
    const auto plan = plans.find(grant.job());
    if (plan == plans.end()) {
      return InvalidFields({{"grants.job", absl::StrCat("no plan for job ", grant.job(), " in the reply")}});
    }
    reply.grants.push_back(GrantFromProto(grant, plan->second));
  }
  for (const auto& chain : proto.keep()) reply.keep.push_back(FromProto(chain));
  for (const auto& stop : proto.stop()) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto order, StopFromProto(stop));
    reply.stop.push_back(std::move(order));
  }
  reply.next_sync_in = DurationFromProto(proto.next_sync_in());
  reply.lease_ttl = DurationFromProto(proto.lease_ttl());
  reply.drain = proto.drain();
  return reply;
}

v1::CommitProgressRequest ToProto(const SignedCommit& commit) {
  v1::CommitProgressRequest proto;
  proto.set_worker(commit.worker);
  proto.set_incarnation(commit.incarnation);
  proto.set_store_incarnation(commit.commit.store_incarnation);
  *proto.mutable_chain() = ToProto(commit.commit.chain);
  proto.set_lease_epoch(commit.commit.lease_epoch);
  *proto.mutable_resume_point() = ToProto(commit.commit.resume_point);
  if (commit.commit.segment) *proto.mutable_segment() = ToProto(*commit.commit.segment);
  *proto.mutable_stats() = ToProto(commit.commit.stats);
  if (commit.commit.ends_as) proto.set_ends_as(ToProto(*commit.commit.ends_as));
  proto.set_reason(commit.commit.reason);
  proto.set_host(commit.host);
  proto.set_device_kind(commit.device_kind);
  proto.set_numerics_version(commit.numerics_version);
  if (!commit.commit.trace.steps.empty()) *proto.mutable_trace() = TraceToProto(commit.commit.trace);
  return proto;
}

absl::StatusOr<SignedCommit> FromProto(const v1::CommitProgressRequest& proto) {
  SignedCommit result;
  result.worker = proto.worker();
  result.incarnation = proto.incarnation();
  result.commit.store_incarnation = proto.store_incarnation();
  result.commit.chain = FromProto(proto.chain());
  result.commit.lease_epoch = proto.lease_epoch();
  result.commit.resume_point = FromProto(proto.resume_point());
  if (proto.has_segment()) {
    CHAINFLEET_ASSIGN_OR_RETURN(result.commit.segment, FromProto(proto.segment()));
  }
  result.commit.stats = FromProto(proto.stats());
  if (proto.has_ends_as()) {
    CHAINFLEET_ASSIGN_OR_RETURN(result.commit.ends_as, FromProto(proto.ends_as()));
  }
  result.commit.reason = Shortened(proto.reason());
  result.host = proto.host();
  result.device_kind = proto.device_kind();
  result.numerics_version = proto.numerics_version();
  CHAINFLEET_ASSIGN_OR_RETURN(result.commit.trace, TraceFromProto(proto.trace()));
  return result;
}

SegmentRecord RecordOf(const SignedCommit& commit) {
  SegmentRecord record;
  record.chain = commit.commit.chain;
  if (commit.commit.segment) record.segment = *commit.commit.segment;
  record.lease_epoch = commit.commit.lease_epoch;
  record.worker = commit.worker;
  record.host = commit.host;
  record.device_kind = commit.device_kind;
  record.numerics_version = commit.numerics_version;
  return record;
}

}  // namespace chainfleet
