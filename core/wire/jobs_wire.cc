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
  ChoiceFromProto(is_rate ? proto.learning_rate() : proto.step_size(), is_rate ? "learning_rate" : "step_size",
                  &schedule.kind, violations);
  return schedule;
}

BurnIn BurnInFromProto(const v1::JobSpec::BurnIn& proto, Violations* violations) {
  BurnIn burn_in;
  switch (proto.length_case()) {
    case v1::JobSpec::BurnIn::kCycles:
      burn_in.cycles = proto.cycles();
      break;
    case v1::JobSpec::BurnIn::kEpochs:
      burn_in.epochs = proto.epochs();
      break;
    case v1::JobSpec::BurnIn::kSteps:
      burn_in.steps = proto.steps();
      break;
    case v1::JobSpec::BurnIn::LENGTH_NOT_SET:
      violations->push_back({"burn_in", "empty; give one of cycles, epochs, steps, or leave burn_in out"});
  }
  return burn_in;
}

SweepSpec SweepFromProto(const v1::JobSpec::Sweep& proto, Violations* violations) {
  SweepSpec sweep;
  SweepSpec::Fields(sweep, FieldReader(proto, "sweep", violations));
  if (sweep.empty()) violations->push_back({"sweep", "empty; give a list of values, as in eta: [0.0004, 0.001]"});
  return sweep;
}

void CollectToProto(const Collect& collect, v1::JobSpec::Collect* proto) {
  if (collect.last_epochs_of_cycle) proto->set_last_epochs_of_cycle(*collect.last_epochs_of_cycle);
  if (collect.every_steps) proto->set_every_steps(*collect.every_steps);
  for (const DrawKind kind : collect.kinds) proto->add_kinds(ToString(kind));
  proto->set_segment_draws(collect.segment_draws);
}

Collect CollectFromProto(const v1::JobSpec::Collect& proto, Violations* violations) {
  Collect collect;
  if (proto.has_last_epochs_of_cycle()) collect.last_epochs_of_cycle = proto.last_epochs_of_cycle();
  if (proto.has_every_steps()) collect.every_steps = proto.every_steps();
  for (int i = 0; i < proto.kinds_size(); ++i) {
    if (proto.kinds(i) == "theta") {
      collect.kinds.push_back(DrawKind::kTheta);
    } else if (proto.kinds(i) == "theta_a") {
      collect.kinds.push_back(DrawKind::kThetaA);
    } else {
      violations->push_back(
          {absl::StrCat("collect.kinds[", i, "]"), absl::StrCat("\"", proto.kinds(i), "\"; allowed: theta, theta_a")});
    }
  }
  collect.segment_draws = proto.segment_draws();
  return collect;
}

Minibatches MinibatchesFromProto(const std::string& text, Violations* violations) {
  if (text == "independent") return Minibatches::kIndependent;
  if (!text.empty() && text != "reshuffle") {
    violations->push_back({"minibatches", absl::StrCat("\"", text, "\"; allowed: reshuffle, independent")});
  }
  return Minibatches::kReshuffle;
}

}  // namespace

v1::JobSpec::Model ToProto(const ModelSpec& model) {
  v1::JobSpec::Model proto;
  if (const auto* builtin = std::get_if<BuiltinModel>(&model.kind)) {
    proto.set_builtin(builtin->name);
    BuiltinModel::Fields(*builtin, FieldWriter(&proto));
  } else if (const auto* layered = std::get_if<LayeredModel>(&model.kind)) {
    LayersToProto(layered->layers, proto.mutable_layers());
  } else if (const auto* script = std::get_if<TorchScriptModel>(&model.kind)) {
    proto.set_torchscript(script->name);
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
                                        "), layers: [...], torchscript: NAME and potential"}});
  }
  BuiltinModel builtin{proto.builtin(), {}};
  BuiltinModel::Fields(builtin, FieldReader(proto, "model", &violations));
  if (!proto.has_builtin()) {
    const std::string reason = "is a setting of built-in models";
    if (proto.hidden_size() > 0) violations.push_back({"model.hidden", reason});
    if (proto.has_width()) violations.push_back({"model.width", reason});
    if (!proto.stem().empty()) violations.push_back({"model.stem", reason});
  }
  if (layered) {
    model.kind = LayeredModel{LayersFromProto(proto.layers(), "model.layers", &violations)};
  } else if (proto.has_builtin()) {
    model.kind = std::move(builtin);
  } else if (proto.has_torchscript()) {
    model.kind = TorchScriptModel{proto.torchscript()};
  } else {
    ChoiceFromProto(proto.potential(), "model.potential", &model.kind.emplace<PotentialKind>(), &violations);
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
  ChoiceFromProto(proto, "likelihood", &likelihood, &violations);
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(violations));
  return likelihood;
}

v1::JobSpec ToProto(const JobSpec& spec) {
  v1::JobSpec proto;
  proto.set_name(spec.name);
  *proto.mutable_model() = ToProto(spec.model);
  if (!spec.dataset.empty()) proto.mutable_dataset()->set_name(spec.dataset);
  if (spec.model.likelihood) *proto.mutable_likelihood() = ToProto(*spec.model.likelihood);
  if (!spec.prior.is_flat()) ChoiceToProto(spec.prior.kind, proto.mutable_prior());
  ChoiceToProto(spec.sampler.kind, proto.mutable_sampler());
  ScheduleToProto(spec.schedule, &proto);
  proto.set_temperature(spec.temperature);
  proto.set_batch_size(spec.batch_size);
  proto.set_minibatches(spec.minibatches == Minibatches::kReshuffle ? "reshuffle" : "independent");
  if (spec.augmentation.any()) {
    AugmentationSpec::Fields(spec.augmentation, FieldWriter(proto.mutable_augmentation()));
  }
  proto.set_precision(EnumName(spec.precision));
  if (spec.num_epochs) proto.set_num_epochs(*spec.num_epochs);
  if (spec.num_steps) proto.set_num_steps(*spec.num_steps);
  if (spec.burn_in.cycles) proto.mutable_burn_in()->set_cycles(*spec.burn_in.cycles);
  if (spec.burn_in.epochs) proto.mutable_burn_in()->set_epochs(*spec.burn_in.epochs);
  if (spec.burn_in.steps) proto.mutable_burn_in()->set_steps(*spec.burn_in.steps);
  proto.set_chains(spec.chains);
  if (!spec.sweep.empty()) SweepSpec::Fields(spec.sweep, FieldWriter(proto.mutable_sweep()));
  CollectToProto(spec.collect, proto.mutable_collect());
  proto.set_seed(spec.seed);
  proto.set_resume_point_every_steps(spec.resume_point_every_steps);
  SchedulingSpec::Fields(spec.scheduling, FieldWriter(proto.mutable_scheduling()));
  StandardizeSpec::Fields(spec.standardize, FieldWriter(proto.mutable_standardize()));
  if (spec.init.any()) InitSpec::Fields(spec.init, FieldWriter(proto.mutable_init()));
  if (spec.retention.any()) RetentionSpec::Fields(spec.retention, FieldWriter(proto.mutable_retention()));
  if (spec.snapshots.any()) SnapshotsSpec::Fields(spec.snapshots, FieldWriter(proto.mutable_snapshots()));
  if (spec.until.any()) StopRuleSpec::Fields(spec.until, FieldWriter(proto.mutable_until()));
  if (spec.trace_every) proto.set_trace_every(*spec.trace_every);
  return proto;
}

absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& proto) {
  if (const auto size = static_cast<int64_t>(proto.ByteSizeLong()); size > limits::kMaxSpecBytes) {
    return InvalidFields({{"spec", absl::StrCat("has ", size, " bytes, the most is ", limits::kMaxSpecBytes)}});
  }
  Violations violations;
  JobSpec spec;
  spec.name = proto.name();
  if (auto model = FromProto(proto.model()); model.ok()) {
    spec.model = *std::move(model);
  } else {
    violations = FieldViolationsOf(model.status());
  }
  spec.dataset = proto.dataset().name();
  if (proto.has_likelihood()) {
    ChoiceFromProto(proto.likelihood(), "likelihood", &spec.model.likelihood.emplace(), &violations);
  }
  if (proto.has_prior()) ChoiceFromProto(proto.prior(), "prior", &spec.prior.kind, &violations);
  ChoiceFromProto(proto.sampler(), "sampler", &spec.sampler.kind, &violations);
  spec.schedule = ScheduleFromProto(proto, &violations);
  if (proto.has_temperature()) spec.temperature = proto.temperature();
  if (proto.has_batch_size()) spec.batch_size = proto.batch_size();
  spec.minibatches = MinibatchesFromProto(proto.minibatches(), &violations);
  AugmentationSpec::Fields(spec.augmentation, FieldReader(proto.augmentation(), "augmentation", &violations));
  FieldReader(proto, "", &violations)("precision", spec.precision);
  if (proto.has_num_epochs()) spec.num_epochs = proto.num_epochs();
  if (proto.has_num_steps()) spec.num_steps = proto.num_steps();
  if (proto.has_burn_in()) spec.burn_in = BurnInFromProto(proto.burn_in(), &violations);
  if (proto.has_chains()) spec.chains = proto.chains();
  if (proto.has_sweep()) spec.sweep = SweepFromProto(proto.sweep(), &violations);
  spec.collect = CollectFromProto(proto.collect(), &violations);
  spec.seed = proto.seed();
  spec.resume_point_every_steps = proto.resume_point_every_steps();
  SchedulingSpec::Fields(spec.scheduling, FieldReader(proto.scheduling(), "scheduling", &violations));
  if (proto.has_standardize()) {
    StandardizeSpec::Fields(spec.standardize, FieldReader(proto.standardize(), "standardize", &violations));
  }
  InitSpec::Fields(spec.init, FieldReader(proto.init(), "init", &violations));
  RetentionSpec::Fields(spec.retention, FieldReader(proto.retention(), "retention", &violations));
  SnapshotsSpec::Fields(spec.snapshots, FieldReader(proto.snapshots(), "snapshots", &violations));
  StopRuleSpec::Fields(spec.until, FieldReader(proto.until(), "until", &violations));
  if (proto.has_trace_every()) spec.trace_every = proto.trace_every();
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(violations));
  return spec;
}

// The proto's values are those of the enums, shifted by its UNSPECIFIED.
v1::Job::Intent ToProto(JobIntent intent) { return static_cast<v1::Job::Intent>(static_cast<int>(intent) + 1); }

absl::StatusOr<JobIntent> FromProto(v1::Job::Intent proto) {
  if (proto >= v1::Job::RUN && proto <= v1::Job::DELETE) return static_cast<JobIntent>(static_cast<int>(proto) - 1);
  return InvalidFields({{"intent", "missing or unknown; give one of RUN, PAUSE, FINISH, CANCEL, DELETE"}});
}

v1::Job::State ToProto(JobState state) { return static_cast<v1::Job::State>(static_cast<int>(state) + 1); }

absl::StatusOr<JobState> FromProto(v1::Job::State proto) {
  if (proto >= v1::Job::PENDING && proto <= v1::Job::DELETING)
    return static_cast<JobState>(static_cast<int>(proto) - 1);
  return InvalidFields({{"state",
                         "missing or unknown; give one of PENDING, RUNNING, PAUSED, SUCCEEDED, SUCCEEDED_EARLY, "
                         "FAILED, CANCELLED, DELETING"}});
}

absl::StatusOr<JobState> JobStateFromString(const std::string& name) {
  v1::Job::State state = v1::Job::STATE_UNSPECIFIED;
  v1::Job::State_Parse(name, &state);
  return FromProto(state);
}

}  // namespace chainfleet
