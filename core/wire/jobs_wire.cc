#include "core/wire/jobs_wire.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/content_limits.h"
#include "core/base/limits.h"
#include "core/wire/field_wire.h"
#include "core/wire/layers_wire.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

using Violations = std::vector<FieldViolation>;

void ScheduleToProto(const ScheduleSpec& schedule, v1::JobSpec* proto) {
  auto* out = schedule.scale == StepScale::kLearningRate ? proto->mutable_learning_rate() : proto->mutable_step_size();
  ChoiceToProto(schedule.kind, out);
}

ScheduleSpec ScheduleFromProto(const v1::JobSpec& proto, Violations* violations) {
  ScheduleSpec schedule;
  if (proto.schedule_case() == v1::JobSpec::SCHEDULE_NOT_SET) {
    violations->push_back({"learning_rate",
                           "missing; give learning_rate (h, on the mean loss) or step_size (alpha, on the full-data "
                           "potential; alpha = h / N)"});
    return schedule;
  }
  schedule.scale = proto.has_learning_rate() ? StepScale::kLearningRate : StepScale::kStepSize;
  const bool is_rate = proto.has_learning_rate();
  ChoiceFromProto(is_rate ? proto.learning_rate() : proto.step_size(),
                  {.name = is_rate ? "learning_rate" : "step_size"}, &schedule.kind, violations);
  return schedule;
}

}  // namespace

v1::JobSpec::Model ToProto(const ModelSpec& model) {
  v1::JobSpec::Model proto;
  if (const auto* builtin = std::get_if<BuiltinModel>(&model.kind)) {
    proto.set_builtin(builtin->name);
    wire::WriteFields(*builtin, &proto);
  } else if (const auto* layered = std::get_if<LayeredModel>(&model.kind)) {
    LayersToProto(layered->layers, proto.mutable_layers());
  } else if (const auto* stored = std::get_if<StoredNetworkModel>(&model.kind)) {
    if (stored->format == ModelFormat::kTorchScript) proto.set_torchscript(stored->name);
    if (stored->format == ModelFormat::kExported) proto.set_exported(stored->name);
  } else {
    ChoiceToProto(std::get<PotentialKind>(model.kind), proto.mutable_potential());
  }
  return proto;
}

absl::StatusOr<ModelSpec> FromProto(const v1::JobSpec::Model& proto) {
  ModelSpec model;
  Violations violations;
  const bool layered = proto.layers_size() > 0;
  if ((proto.kind_case() != v1::JobSpec::Model::KIND_NOT_SET) == layered) {
    return InvalidFields({{"model", "give exactly one of builtin: NAME (" + BuiltinNames() +
                                        "), layers: [...], exported: NAME, torchscript: NAME and potential"}});
  }
  BuiltinModel builtin{proto.builtin(), {}};
  wire::ReadFields(proto, FieldPath{.name = "model"}, &builtin, &violations);
  if (!proto.has_builtin()) {
    const std::string reason = "is a setting of built-in models";
    if (proto.hidden_size() > 0) violations.push_back({"model.hidden", reason});
    if (proto.has_width()) violations.push_back({"model.width", reason});
    if (!proto.stem().empty()) violations.push_back({"model.stem", reason});
  }
  if (layered) {
    model.kind = LayeredModel{LayersFromProto(proto.layers(), {.name = "model.layers"}, &violations)};
  } else if (proto.has_builtin()) {
    model.kind = std::move(builtin);
  } else if (proto.has_torchscript()) {
    model.kind = StoredNetworkModel{proto.torchscript(), ModelFormat::kTorchScript};
  } else if (proto.has_exported()) {
    model.kind = StoredNetworkModel{proto.exported()};
  } else {
    ChoiceFromProto(proto.potential(), {.name = "model.potential"}, &model.kind.emplace<PotentialKind>(), &violations);
  }
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(violations));
  return model;
}

v1::JobSpec::Likelihood ToProto(const LikelihoodKind& likelihood) {
  v1::JobSpec::Likelihood proto;
  ChoiceToProto(likelihood, &proto);
  return proto;
}

absl::StatusOr<LikelihoodKind> FromProto(const v1::JobSpec::Likelihood& proto) {
  LikelihoodKind likelihood;
  Violations violations;
  ChoiceFromProto(proto, {.name = "likelihood"}, &likelihood, &violations);
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(violations));
  return likelihood;
}

v1::JobSpec ToProto(const JobSpec& spec) {
  auto proto = Written<v1::JobSpec>(spec);
  *proto.mutable_model() = ToProto(spec.model);
  if (!spec.dataset.empty()) proto.mutable_dataset()->set_name(spec.dataset);
  if (spec.model.likelihood) *proto.mutable_likelihood() = ToProto(*spec.model.likelihood);
  if (!spec.prior.is_flat()) ChoiceToProto(spec.prior.kind, proto.mutable_prior());
  ChoiceToProto(spec.sampler.kind, proto.mutable_sampler());
  ScheduleToProto(spec.schedule, &proto);
  return proto;
}

absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& proto) {
  if (const auto size = static_cast<int64_t>(proto.ByteSizeLong()); size > limits::kMaxSpecBytes) {
    return InvalidFields({{"spec", absl::StrCat("has ", size, " bytes, the most is ", limits::kMaxSpecBytes)}});
  }
  Violations violations;
  JobSpec spec;
  if (auto model = FromProto(proto.model()); model.ok()) {
    spec.model = *std::move(model);
  } else {
    violations = FieldViolationsOf(model.status());
  }
  spec.dataset = proto.dataset().name();
  if (proto.has_likelihood()) {
    ChoiceFromProto(proto.likelihood(), {.name = "likelihood"}, &spec.model.likelihood.emplace(), &violations);
  }
  if (proto.has_prior()) ChoiceFromProto(proto.prior(), {.name = "prior"}, &spec.prior.kind, &violations);
  ChoiceFromProto(proto.sampler(), {.name = "sampler"}, &spec.sampler.kind, &violations);
  spec.schedule = ScheduleFromProto(proto, &violations);
  wire::ReadFields(proto, FieldPath(), &spec, &violations);
  if (proto.has_burn_in() && !spec.burn_in.any()) {
    violations.push_back({"burn_in", "empty; give one of cycles, epochs, steps, or leave burn_in out"});
  }
  if (proto.has_sweep() && !spec.sweep.any()) {
    violations.push_back({"sweep", "empty; give a list of values, as in eta: [0.0004, 0.001]"});
  }
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(violations));
  return spec;
}

// The proto's values are the enum's, shifted by one for UNSPECIFIED.
v1::Job::Intent ToProto(JobIntent intent) { return static_cast<v1::Job::Intent>(static_cast<int>(intent) + 1); }

absl::StatusOr<JobIntent> FromProto(v1::Job::Intent proto) {
  if (proto >= v1::Job::RUN && proto <= v1::Job::DELETE) return static_cast<JobIntent>(static_cast<int>(proto) - 1);
  return InvalidFields({{"intent", "missing or unknown; give one of RUN, PAUSE, FINISH, CANCEL, DELETE"}});
}

v1::Job::State ToProto(JobState state) { return static_cast<v1::Job::State>(static_cast<int>(state) + 1); }

absl::StatusOr<JobState> JobStateFromString(const std::string& name) {
  v1::Job::State state = v1::Job::STATE_UNSPECIFIED;
  v1::Job::State_Parse(name, &state);
  if (state != v1::Job::STATE_UNSPECIFIED) return static_cast<JobState>(static_cast<int>(state) - 1);
  return InvalidFields({{"state",
                         "missing or unknown; give one of PENDING, RUNNING, PAUSED, SUCCEEDED, SUCCEEDED_EARLY, "
                         "FAILED, CANCELLED, DELETING"}});
}

}  // namespace chainfleet
