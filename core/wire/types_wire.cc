#include "core/wire/types_wire.h"

#include "absl/strings/str_cat.h"
#include "core/wire/field_wire.h"

namespace chainfleet {
namespace {

absl::Status Unknown(const std::string& path, int value, const std::string& allowed) {
  return InvalidFields({{path, absl::StrCat("unknown value ", value, "; this version knows ", allowed)}});
}

}  // namespace

v1::ChainId ToProto(const ChainId& id) {
  v1::ChainId proto;
  proto.set_job(id.job);
  proto.set_index(id.index);
  return proto;
}

ChainId FromProto(const v1::ChainId& proto) { return {proto.job(), proto.index()}; }

v1::DrawKind ToProto(DrawKind kind) { return kind == DrawKind::kTheta ? v1::THETA : v1::THETA_A; }

absl::StatusOr<DrawKind> FromProto(v1::DrawKind proto) {
  if (proto == v1::THETA) return DrawKind::kTheta;
  if (proto == v1::THETA_A) return DrawKind::kThetaA;
  return Unknown("kinds", proto, "THETA, THETA_A");
}

absl::StatusOr<std::vector<DrawKind>> KindsFromProto(const google::protobuf::RepeatedField<int>& proto) {
  std::vector<DrawKind> kinds;
  for (const int value : proto) {
    CHAINFLEET_ASSIGN_OR_RETURN(const DrawKind kind, FromProto(static_cast<v1::DrawKind>(value)));
    kinds.push_back(kind);
  }
  return kinds;
}

void KindsToProto(const std::vector<DrawKind>& kinds, google::protobuf::RepeatedField<int>* proto) {
  for (const DrawKind kind : kinds) proto->Add(ToProto(kind));
}

// The proto's values are those of the enums, shifted by its UNSPECIFIED.
v1::ChainState ToProto(ChainState state) { return static_cast<v1::ChainState>(static_cast<int>(state) + 1); }

absl::StatusOr<ChainState> FromProto(v1::ChainState proto) {
  if (proto >= v1::PENDING && proto <= v1::CANCELLED) return static_cast<ChainState>(static_cast<int>(proto) - 1);
  return Unknown("chain state", proto, "PENDING, LEASED, SUCCEEDED, FAILED, DIVERGED, CANCELLED");
}

v1::InputType ToProto(InputType type) { return type == InputType::kUint8 ? v1::UINT8 : v1::FLOAT32; }

absl::StatusOr<InputType> FromProto(v1::InputType proto) {
  if (proto == v1::UINT8) return InputType::kUint8;
  if (proto == v1::FLOAT32) return InputType::kFloat32;
  return Unknown("input type", proto, "UINT8, FLOAT32");
}

v1::BlobRef ToProto(const BlobRef& ref) {
  v1::BlobRef proto;
  proto.set_name(ref.name);
  proto.set_size_bytes(ref.size_bytes);
  proto.set_sha256(ref.sha256);
  return proto;
}

BlobRef FromProto(const v1::BlobRef& proto) { return {proto.name(), proto.size_bytes(), proto.sha256()}; }

v1::Segment ToProto(const Segment& segment) {
  v1::Segment proto;
  proto.set_first_index(segment.first_index);
  proto.mutable_steps()->Add(segment.steps.begin(), segment.steps.end());
  proto.mutable_weights()->Add(segment.weights.begin(), segment.weights.end());
  KindsToProto(segment.kinds, proto.mutable_kinds());
  *proto.mutable_object() = ToProto(segment.object);
  proto.set_digest(segment.digest);
  proto.set_parent_digest(segment.parent_digest);
  return proto;
}

absl::StatusOr<Segment> FromProto(const v1::Segment& proto) {
  Segment segment;
  segment.first_index = proto.first_index();
  segment.steps = FromProto(proto.steps());
  segment.weights = FromProto(proto.weights());
  CHAINFLEET_ASSIGN_OR_RETURN(segment.kinds, KindsFromProto(proto.kinds()));
  segment.object = FromProto(proto.object());
  segment.digest = proto.digest();
  segment.parent_digest = proto.parent_digest();
  return segment;
}

v1::SegmentRecord ToProto(const SegmentRecord& record) {
  v1::SegmentRecord proto;
  *proto.mutable_chain() = ToProto(record.chain);
  *proto.mutable_segment() = ToProto(record.segment);
  proto.set_lease_epoch(record.lease_epoch);
  proto.set_worker(record.worker);
  proto.set_host(record.host);
  proto.set_device_kind(record.device_kind);
  proto.set_numerics_version(record.numerics_version);
  *proto.mutable_committed_at() = ToProto(record.committed_at);
  proto.set_corrupt(record.corrupt);
  proto.set_deleted(record.deleted);
  return proto;
}

absl::StatusOr<SegmentRecord> FromProto(const v1::SegmentRecord& proto) {
  SegmentRecord record;
  record.chain = FromProto(proto.chain());
  CHAINFLEET_ASSIGN_OR_RETURN(record.segment, FromProto(proto.segment()));
  record.lease_epoch = proto.lease_epoch();
  record.worker = proto.worker();
  record.host = proto.host();
  record.device_kind = proto.device_kind();
  record.numerics_version = proto.numerics_version();
  record.committed_at = FromProto(proto.committed_at());
  record.corrupt = proto.corrupt();
  record.deleted = proto.deleted();
  return record;
}

v1::ResumePoint ToProto(const ResumePoint& point) {
  v1::ResumePoint proto;
  proto.set_step(point.step);
  proto.set_inline_bytes(point.inline_bytes);
  if (point.object) *proto.mutable_object() = ToProto(*point.object);
  proto.set_sha256(point.sha256);
  return proto;
}

ResumePoint FromProto(const v1::ResumePoint& proto) {
  ResumePoint point{.step = proto.step(), .inline_bytes = proto.inline_bytes(), .object = {}, .sha256 = proto.sha256()};
  if (proto.has_object()) point.object = FromProto(proto.object());
  return point;
}

v1::ChainStats ToProto(const ChainStats& stats) {
  v1::ChainStats proto;
  proto.set_energy(stats.energy);
  proto.set_step_size(stats.step_size);
  proto.set_temperature(stats.temperature);
  proto.set_steps_per_second(stats.steps_per_second);
  proto.set_anchor_distance(stats.anchor_distance);
  if (stats.metropolis) {
    v1::MetropolisStats& metropolis = *proto.mutable_metropolis();
    metropolis.set_acceptance(stats.metropolis->acceptance);
    metropolis.set_noise_variance(stats.metropolis->noise_variance);
    metropolis.set_skew(stats.metropolis->skew);
    metropolis.set_kurtosis(stats.metropolis->kurtosis);
    metropolis.set_guarded(stats.metropolis->guarded);
  }
  if (stats.report) RunReport::Fields(*stats.report, FieldWriter(proto.mutable_report()));
  proto.set_device_bytes(stats.device_bytes);
  return proto;
}

ChainStats FromProto(const v1::ChainStats& proto) {
  ChainStats stats = {.energy = proto.energy(),
                      .step_size = proto.step_size(),
                      .temperature = proto.temperature(),
                      .steps_per_second = proto.steps_per_second(),
                      .anchor_distance = proto.anchor_distance(),
                      .device_bytes = proto.device_bytes()};
  if (proto.has_metropolis()) {
    const v1::MetropolisStats& metropolis = proto.metropolis();
    stats.metropolis = {.acceptance = metropolis.acceptance(),
                        .noise_variance = metropolis.noise_variance(),
                        .skew = metropolis.skew(),
                        .kurtosis = metropolis.kurtosis(),
                        .guarded = metropolis.guarded()};
  }
  if (proto.has_report()) {
    // No enum is among its fields: nothing can be a violation.
    RunReport::Fields(stats.report.emplace(), FieldReader(proto.report(), "report", nullptr));
  }
  return stats;
}

v1::Normalisation ToProto(const Normalisation& normalisation) {
  v1::Normalisation proto;
  proto.mutable_mean()->Add(normalisation.mean.begin(), normalisation.mean.end());
  proto.mutable_stddev()->Add(normalisation.stddev.begin(), normalisation.stddev.end());
  return proto;
}

Normalisation FromProto(const v1::Normalisation& proto) {
  return {.mean = FromProto(proto.mean()), .stddev = FromProto(proto.stddev())};
}

v1::TargetUnits ToProto(const TargetUnits& units) {
  v1::TargetUnits proto;
  proto.set_mean(units.mean);
  proto.set_stddev(units.stddev);
  return proto;
}

TargetUnits FromProto(const v1::TargetUnits& proto) { return {.mean = proto.mean(), .stddev = proto.stddev()}; }

v1::StoredModel ToProto(const StoredModel& model) {
  v1::StoredModel proto;
  proto.set_name(model.name);
  *proto.mutable_object() = ToProto(model.object);
  *proto.mutable_created_at() = ToProto(model.created_at);
  return proto;
}

StoredModel FromProto(const v1::StoredModel& proto) {
  return {.name = proto.name(), .object = FromProto(proto.object()), .created_at = FromProto(proto.created_at())};
}

v1::Dataset ToProto(const Dataset& dataset) {
  v1::Dataset proto;
  proto.set_name(dataset.name);
  proto.set_digest(dataset.digest);
  proto.set_input_type(ToProto(dataset.input_type));
  proto.mutable_input_shape()->Add(dataset.input_shape.begin(), dataset.input_shape.end());
  proto.set_num_rows(dataset.num_rows);
  proto.set_target_type(dataset.target_type == TargetType::kLabels ? v1::LABELS : v1::FLOAT32_TARGETS);
  proto.set_num_classes(dataset.num_classes);
  *proto.mutable_normalisation() = ToProto(dataset.normalisation);
  *proto.mutable_target_units() = ToProto(dataset.target_units);
  for (const DatasetShard& shard : dataset.shards) {
    auto* added = proto.add_shards();
    added->set_first_row(shard.first_row);
    added->set_num_rows(shard.num_rows);
    *added->mutable_object() = ToProto(shard.object);
  }
  *proto.mutable_created_at() = ToProto(dataset.created_at);
  return proto;
}

absl::StatusOr<Dataset> FromProto(const v1::Dataset& proto) {
  Dataset dataset;
  dataset.name = proto.name();
  dataset.digest = proto.digest();
  CHAINFLEET_ASSIGN_OR_RETURN(dataset.input_type, FromProto(proto.input_type()));
  dataset.input_shape = FromProto(proto.input_shape());
  dataset.num_rows = proto.num_rows();
  dataset.target_type = proto.target_type() == v1::FLOAT32_TARGETS ? TargetType::kFloat32 : TargetType::kLabels;
  dataset.num_classes = proto.num_classes();
  dataset.normalisation = FromProto(proto.normalisation());
  if (proto.has_target_units()) dataset.target_units = FromProto(proto.target_units());
  for (const auto& shard : proto.shards()) {
    dataset.shards.push_back({shard.first_row(), shard.num_rows(), FromProto(shard.object())});
  }
  dataset.created_at = FromProto(proto.created_at());
  return dataset;
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp proto;
  const absl::Duration since_epoch = absl::Floor(time - absl::UnixEpoch(), absl::Seconds(1));
  proto.set_seconds(absl::ToInt64Seconds(since_epoch));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::UnixEpoch() - since_epoch)));
  return proto;
}

absl::Time FromProto(const google::protobuf::Timestamp& proto) {
  return absl::FromUnixSeconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

}  // namespace chainfleet
