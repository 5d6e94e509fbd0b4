#include "core/store/state_store/record_json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/store/state_store/field_json.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;

template <typename T>
void Put(Json* j, const char* key, const std::optional<T>& value) {
  if (value) (*j)[key] = *value;
}

template <typename T>
void Take(const Json& j, const char* key, T* value) {
  if (const auto found = j.find(key); found != j.end()) *value = found->get<T>();
}

template <typename T>
void Take(const Json& j, const char* key, std::optional<T>* value) {
  if (const auto found = j.find(key); found != j.end()) *value = found->get<T>();
}

template <typename T>
void TakeEnum(const Json& j, const char* key, T* value) {
  if (const auto found = j.find(key); found != j.end()) *value = static_cast<T>(found->get<int>());
}

std::vector<int> Numbers(const std::vector<DrawKind>& kinds) {
  std::vector<int> numbers;
  for (const DrawKind kind : kinds) numbers.push_back(static_cast<int>(kind));
  return numbers;
}

void TakeKinds(const Json& j, std::vector<DrawKind>* kinds) {
  for (const Json& number : j.value("kinds", Json::array())) kinds->push_back(static_cast<DrawKind>(number.get<int>()));
}

Json ToJson(const LayerList& layers) {
  Json list = Json::array();
  for (const LayerSpec& layer : layers) {
    Json& entry = list.emplace_back(ChoiceToJson(layer.kind));
    ForEachList(layer,
                [&](const char* name, const LayerList& inner) { entry[NameOf(layer.kind)][name] = ToJson(inner); });
  }
  return list;
}

void FromJson(const Json& j, LayerList* layers) {
  for (const Json& entry : j) {
    LayerSpec layer;
    ChoiceFromJson(entry, &layer.kind);
    ForEachList(layer,
                [&](const char* name, LayerList& inner) { FromJson(entry[NameOf(layer.kind)].at(name), &inner); });
    layers->push_back(std::move(layer));
  }
}

Json ToJson(const ModelSpec& model) {
  if (const auto* builtin = std::get_if<BuiltinModel>(&model.kind)) {
    Json j{{"builtin", builtin->name}};
    BuiltinModel::Fields(*builtin, JsonFieldWriter(&j));
    return j;
  }
  if (const auto* layered = std::get_if<LayeredModel>(&model.kind)) return {{"layers", ToJson(layered->layers)}};
  if (const auto* script = std::get_if<TorchScriptModel>(&model.kind)) return {{"torchscript", script->name}};
  return ChoiceToJson(std::get<PotentialKind>(model.kind));
}

void FromJson(const Json& j, ModelSpec* model) {
  if (j.contains("layers")) {
    FromJson(j["layers"], &model->kind.emplace<LayeredModel>().layers);
    return;
  }
  if (j.contains("torchscript")) {
    model->kind = TorchScriptModel{j["torchscript"].get<std::string>()};
    return;
  }
  if (!j.contains("builtin")) return ChoiceFromJson(j, &model->kind.emplace<PotentialKind>());
  BuiltinModel builtin;
  builtin.name = j.at("builtin").get<std::string>();
  BuiltinModel::Fields(builtin, JsonFieldReader(j));
  model->kind = std::move(builtin);
}

Json ToJson(const JobSpec& spec) {
  Json burn_in = Json::object(),
       collect{{"kinds", Numbers(spec.collect.kinds)}, {"segment_draws", spec.collect.segment_draws}};
  Put(&burn_in, "cycles", spec.burn_in.cycles);
  Put(&burn_in, "epochs", spec.burn_in.epochs);
  Put(&burn_in, "steps", spec.burn_in.steps);
  Put(&collect, "last_epochs_of_cycle", spec.collect.last_epochs_of_cycle);
  Put(&collect, "every_steps", spec.collect.every_steps);
  Json j{{"name", spec.name},
         {"model", ToJson(spec.model)},
         {"dataset", spec.dataset},
         {"prior", ChoiceToJson(spec.prior.kind)},
         {"sampler", ChoiceToJson(spec.sampler.kind)},
         {"step_scale", static_cast<int>(spec.schedule.scale)},
         {"schedule", ChoiceToJson(spec.schedule.kind)},
         {"temperature", spec.temperature},
         {"batch_size", spec.batch_size},
         {"minibatches", static_cast<int>(spec.minibatches)},
         {"precision", EnumName(spec.precision)},
         {"burn_in", std::move(burn_in)},
         {"chains", spec.chains},
         {"collect", std::move(collect)},
         {"seed", spec.seed},
         {"resume_point_every_steps", spec.resume_point_every_steps}};
  if (spec.model.likelihood) j["likelihood"] = ChoiceToJson(*spec.model.likelihood);
  if (spec.augmentation.any()) AugmentationSpec::Fields(spec.augmentation, JsonFieldWriter(&j["augmentation"]));
  if (!spec.sweep.empty()) SweepSpec::Fields(spec.sweep, JsonFieldWriter(&j["sweep"]));
  SchedulingSpec::Fields(spec.scheduling, JsonFieldWriter(&j["scheduling"]));
  if (spec.standardize != StandardizeSpec()) {
    StandardizeSpec::Fields(spec.standardize, JsonFieldWriter(&j["standardize"]));
  }
  if (spec.init.any()) InitSpec::Fields(spec.init, JsonFieldWriter(&j["init"]));
  if (spec.retention.any()) RetentionSpec::Fields(spec.retention, JsonFieldWriter(&j["retention"]));
  if (spec.snapshots.any()) SnapshotsSpec::Fields(spec.snapshots, JsonFieldWriter(&j["snapshots"]));
  if (spec.until.any()) StopRuleSpec::Fields(spec.until, JsonFieldWriter(&j["until"]));
  Put(&j, "trace_every", spec.trace_every);
  Put(&j, "num_epochs", spec.num_epochs);
  Put(&j, "num_steps", spec.num_steps);
  return j;
}

void FromJson(const Json& j, JobSpec* spec) {
  Take(j, "name", &spec->name);
  FromJson(j.at("model"), &spec->model);
  if (j.contains("likelihood")) ChoiceFromJson(j["likelihood"], &spec->model.likelihood.emplace());
  Take(j, "dataset", &spec->dataset);
  ChoiceFromJson(j.at("prior"), &spec->prior.kind);
  ChoiceFromJson(j.at("sampler"), &spec->sampler.kind);
  TakeEnum(j, "step_scale", &spec->schedule.scale);
  ChoiceFromJson(j.at("schedule"), &spec->schedule.kind);
  Take(j, "temperature", &spec->temperature);
  Take(j, "batch_size", &spec->batch_size);
  TakeEnum(j, "minibatches", &spec->minibatches);
  if (j.contains("augmentation")) AugmentationSpec::Fields(spec->augmentation, JsonFieldReader(j["augmentation"]));
  const JsonFieldReader fields(j);
  fields("precision", spec->precision);
  Take(j, "num_epochs", &spec->num_epochs);
  Take(j, "num_steps", &spec->num_steps);
  Take(j, "chains", &spec->chains);
  if (j.contains("sweep")) SweepSpec::Fields(spec->sweep, JsonFieldReader(j["sweep"]));
  if (j.contains("scheduling")) SchedulingSpec::Fields(spec->scheduling, JsonFieldReader(j["scheduling"]));
  if (j.contains("standardize")) StandardizeSpec::Fields(spec->standardize, JsonFieldReader(j["standardize"]));
  if (j.contains("init")) InitSpec::Fields(spec->init, JsonFieldReader(j["init"]));
  if (j.contains("retention")) RetentionSpec::Fields(spec->retention, JsonFieldReader(j["retention"]));
  if (j.contains("snapshots")) SnapshotsSpec::Fields(spec->snapshots, JsonFieldReader(j["snapshots"]));
  if (j.contains("until")) StopRuleSpec::Fields(spec->until, JsonFieldReader(j["until"]));
  Take(j, "trace_every", &spec->trace_every);
  Take(j, "seed", &spec->seed);
  Take(j, "resume_point_every_steps", &spec->resume_point_every_steps);
  const Json burn_in = j.value("burn_in", Json::object()), collect = j.value("collect", Json::object());
  Take(burn_in, "cycles", &spec->burn_in.cycles);
  Take(burn_in, "epochs", &spec->burn_in.epochs);
  Take(burn_in, "steps", &spec->burn_in.steps);
  Take(collect, "last_epochs_of_cycle", &spec->collect.last_epochs_of_cycle);
  Take(collect, "every_steps", &spec->collect.every_steps);
  TakeKinds(collect, &spec->collect.kinds);
  Take(collect, "segment_draws", &spec->collect.segment_draws);
}

Json ToJson(const BlobRef& ref) { return {{"name", ref.name}, {"size_bytes", ref.size_bytes}, {"sha256", ref.sha256}}; }

void FromJson(const Json& j, BlobRef* ref) {
  ref->name = j.at("name").get<std::string>();
  ref->size_bytes = j.at("size_bytes").get<int64_t>();
  ref->sha256 = j.at("sha256").get<std::string>();
}

Json ToJson(const Normalisation& n) { return {{"mean", n.mean}, {"stddev", n.stddev}}; }

void FromJson(const Json& j, Normalisation* n) {
  Take(j, "mean", &n->mean);
  Take(j, "stddev", &n->stddev);
}

Json ToJson(const TargetUnits& units) { return {{"mean", units.mean}, {"stddev", units.stddev}}; }

// A record of an older release has none: 0 and 1.
TargetUnits TargetUnitsOf(const Json& record) {
  TargetUnits units;
  if (!record.contains("target_units")) return units;
  Take(record["target_units"], "mean", &units.mean);
  Take(record["target_units"], "stddev", &units.stddev);
  return units;
}

Json ToJson(const Dataset& dataset) {
  Json shards = Json::array();
  for (const DatasetShard& shard : dataset.shards) {
    shards.push_back({{"first_row", shard.first_row}, {"num_rows", shard.num_rows}, {"object", ToJson(shard.object)}});
  }
  return {{"name", dataset.name},
          {"digest", dataset.digest},
          {"input_type", static_cast<int>(dataset.input_type)},
          {"input_shape", dataset.input_shape},
          {"num_rows", dataset.num_rows},
          {"target_type", static_cast<int>(dataset.target_type)},
          {"num_classes", dataset.num_classes},
          {"normalisation", ToJson(dataset.normalisation)},
          {"target_units", ToJson(dataset.target_units)},
          {"shards", std::move(shards)},
          {"created_at_ns", absl::ToUnixNanos(dataset.created_at)},
          {"tenant", dataset.tenant}};
}

void FromJson(const Json& j, Dataset* dataset) {
  dataset->name = j.at("name").get<std::string>();
  dataset->digest = j.at("digest").get<std::string>();
  TakeEnum(j, "input_type", &dataset->input_type);
  Take(j, "input_shape", &dataset->input_shape);
  Take(j, "num_rows", &dataset->num_rows);
  TakeEnum(j, "target_type", &dataset->target_type);
  Take(j, "num_classes", &dataset->num_classes);
  FromJson(j.at("normalisation"), &dataset->normalisation);
  dataset->target_units = TargetUnitsOf(j);
  for (const Json& entry : j.at("shards")) {
    DatasetShard& shard = dataset->shards.emplace_back();
    Take(entry, "first_row", &shard.first_row);
    Take(entry, "num_rows", &shard.num_rows);
    FromJson(entry.at("object"), &shard.object);
  }
  dataset->created_at = absl::FromUnixNanos(j.value("created_at_ns", int64_t{0}));
  dataset->tenant = j.value("tenant", kDefaultTenant);
}

Json ToJson(const StoredModel& model) {
  return {{"name", model.name},
          {"object", ToJson(model.object)},
          {"created_at_ns", absl::ToUnixNanos(model.created_at)},
          {"tenant", model.tenant}};
}

void FromJson(const Json& j, StoredModel* model) {
  model->name = j.at("name").get<std::string>();
  FromJson(j.at("object"), &model->object);
  model->created_at = absl::FromUnixNanos(j.value("created_at_ns", int64_t{0}));
  model->tenant = j.value("tenant", kDefaultTenant);
}

Json ToJson(const JobPlan& plan) {
  Json j{{"job", plan.job},
         {"spec", ToJson(plan.spec)},
         {"normalisation", ToJson(plan.normalisation)},
         {"target_units", ToJson(plan.target_units)}};
  if (plan.dataset) j["dataset"] = ToJson(*plan.dataset);
  if (plan.module) j["module"] = ToJson(*plan.module);
  return j;
}

void FromJson(const Json& j, JobPlan* plan) {
  plan->job = j.at("job").get<std::string>();
  FromJson(j.at("spec"), &plan->spec);
  FromJson(j.at("normalisation"), &plan->normalisation);
  plan->target_units = TargetUnitsOf(j);
  if (!j.contains("target_units")) plan->spec.standardize.targets = false;  // an older release never did
  if (j.contains("dataset")) FromJson(j["dataset"], &plan->dataset.emplace());
  if (j.contains("module")) FromJson(j["module"], &plan->module.emplace());
}

Json ToJson(const SegmentRecord& record) {
  const Segment& s = record.segment;
  return {{"first_index", s.first_index},
          {"steps", s.steps},
          {"weights", s.weights},
          {"kinds", Numbers(s.kinds)},
          {"object", ToJson(s.object)},
          {"digest", s.digest},
          {"parent_digest", s.parent_digest},
          {"lease_epoch", record.lease_epoch},
          {"worker", record.worker},
          {"host", record.host},
          {"device_kind", record.device_kind},
          {"numerics_version", record.numerics_version},
          {"committed_at_ns", absl::ToUnixNanos(record.committed_at)}};
}

void FromJson(const Json& j, SegmentRecord* record) {
  Segment& s = record->segment;
  s.first_index = j.at("first_index").get<int64_t>();
  s.steps = j.at("steps").get<std::vector<int64_t>>();
  s.weights = j.at("weights").get<std::vector<double>>();
  TakeKinds(j, &s.kinds);
  FromJson(j.at("object"), &s.object);
  s.digest = j.at("digest").get<std::string>();
  s.parent_digest = j.at("parent_digest").get<std::string>();
  Take(j, "lease_epoch", &record->lease_epoch);
  Take(j, "worker", &record->worker);
  Take(j, "host", &record->host);
  Take(j, "device_kind", &record->device_kind);
  Take(j, "numerics_version", &record->numerics_version);
  record->committed_at = absl::FromUnixNanos(j.value("committed_at_ns", int64_t{0}));
}

void FromJson(const Json& j, std::vector<int64_t>* counts) { *counts = j.get<std::vector<int64_t>>(); }

void FromJson(const Json& j, std::map<int32_t, std::string>* texts) {
  *texts = j.get<std::map<int32_t, std::string>>();
}

// The library reports by exceptions; they end here.
template <typename T>
absl::StatusOr<T> Decode(const std::string& text) {
  try {
    T value;
    FromJson(Json::parse(text), &value);
    return value;
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat("a stored record cannot be read: ", error.what()));
  }
}

// Invalid UTF-8 (a host name) is replaced: encoding never fails.
std::string Dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string EncodeJobPlan(const JobPlan& plan) { return Dump(ToJson(plan)); }
absl::StatusOr<JobPlan> DecodeJobPlan(const std::string& text) { return Decode<JobPlan>(text); }
std::string EncodeDataset(const Dataset& dataset) { return Dump(ToJson(dataset)); }
absl::StatusOr<Dataset> DecodeDataset(const std::string& text) { return Decode<Dataset>(text); }
std::string EncodeModel(const StoredModel& model) { return Dump(ToJson(model)); }
absl::StatusOr<StoredModel> DecodeModel(const std::string& text) { return Decode<StoredModel>(text); }
std::string EncodeSegmentRecord(const SegmentRecord& record) { return Dump(ToJson(record)); }
absl::StatusOr<SegmentRecord> DecodeSegmentRecord(const std::string& text) { return Decode<SegmentRecord>(text); }
std::string EncodeBlobRef(const BlobRef& ref) { return Dump(ToJson(ref)); }
absl::StatusOr<BlobRef> DecodeBlobRef(const std::string& text) { return Decode<BlobRef>(text); }
std::string EncodeCounts(const std::vector<int64_t>& counts) { return Dump(Json(counts)); }
absl::StatusOr<std::vector<int64_t>> DecodeCounts(const std::string& text) {
  return Decode<std::vector<int64_t>>(text);
}
std::string EncodeStopped(const std::map<int32_t, std::string>& stopped) { return Dump(Json(stopped)); }
absl::StatusOr<std::map<int32_t, std::string>> DecodeStopped(const std::string& text) {
  return Decode<std::map<int32_t, std::string>>(text);
}

}  // namespace chainfleet
