#include "core/store/state_store/record_json.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/store/state_store/field_json.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;

Json LayersToJson(const LayerList& layers) {
  Json list = Json::array();
  for (const LayerSpec& layer : layers) {
    Json& entry = list.emplace_back(ChoiceToJson(layer.kind));
    ForEachList(layer, [&](const char* name, const LayerList& inner) {
      entry[NameOf(layer.kind)][name] = LayersToJson(inner);
    });
  }
  return list;
}

void LayersFromJson(const Json& j, LayerList* layers) {
  for (const Json& entry : j) {
    LayerSpec layer;
    ChoiceFromJson(entry, &layer.kind);
    ForEachList(
        layer, [&](const char* name, LayerList& inner) { LayersFromJson(entry[NameOf(layer.kind)].at(name), &inner); });
    layers->push_back(std::move(layer));
  }
}

Json ModelToJson(const ModelSpec& model) {
  if (const auto* builtin = std::get_if<BuiltinModel>(&model.kind)) {
    Json j = ToJson(*builtin);
    j["builtin"] = builtin->name;
    return j;
  }
  if (const auto* layered = std::get_if<LayeredModel>(&model.kind)) return {{"layers", LayersToJson(layered->layers)}};
  if (const auto* stored = std::get_if<StoredNetworkModel>(&model.kind)) {
    return {{EnumName(stored->format), stored->name}};
  }
  return ChoiceToJson(std::get<PotentialKind>(model.kind));
}

void ModelFromJson(const Json& j, ModelSpec* model) {
  if (j.contains("layers")) {
    LayersFromJson(j["layers"], &model->kind.emplace<LayeredModel>().layers);
  } else if (j.contains("torchscript")) {
    model->kind = StoredNetworkModel{j["torchscript"].get<std::string>(), ModelFormat::kTorchScript};
  } else if (j.contains("exported")) {
    model->kind = StoredNetworkModel{j["exported"].get<std::string>()};
  } else if (j.contains("builtin")) {
    BuiltinModel builtin;
    FromJson(j, &builtin);
    builtin.name = j["builtin"].get<std::string>();
    model->kind = std::move(builtin);
  } else {
    ChoiceFromJson(j, &model->kind.emplace<PotentialKind>());
  }
}

// A field that is younger than the format: a record has it only with another value than the default.
Json WithoutDefault(Json choice, const char* field, const char* value) {
  for (Json& fields : choice) {
    if (fields.value(field, "") == value) fields.erase(field);
  }
  return choice;
}

Json RecordOf(const JobSpec& spec) {
  Json j = ToJson(spec);
  j["model"] = ModelToJson(spec.model);
  if (spec.model.likelihood) {
    j["likelihood"] = WithoutDefault(ChoiceToJson(*spec.model.likelihood), "deviation", "exponential");
  }
  j["dataset"] = spec.dataset;
  j["prior"] = ChoiceToJson(spec.prior.kind);
  j["sampler"] = WithoutDefault(ChoiceToJson(spec.sampler.kind), "optimizer", "heavy_ball");
  j["step_scale"] = static_cast<int>(spec.schedule.scale);
  j["schedule"] = ChoiceToJson(spec.schedule.kind);
  if (!spec.burn_in.any()) j["burn_in"] = Json::object();
  if (spec.standardize == StandardizeSpec()) j.erase("standardize");
  return j;
}

void ReadRecord(const Json& j, JobSpec* spec) {
  FromJson(j, spec);
  ModelFromJson(j.at("model"), &spec->model);
  if (j.contains("likelihood")) ChoiceFromJson(j["likelihood"], &spec->model.likelihood.emplace());
  const JsonFieldReader fields(j);
  fields("dataset", spec->dataset);
  ChoiceFromJson(j.at("prior"), &spec->prior.kind);
  ChoiceFromJson(j.at("sampler"), &spec->sampler.kind);
  fields("step_scale", spec->schedule.scale);
  ChoiceFromJson(j.at("schedule"), &spec->schedule.kind);
}

// The record of a data set or a stored module, with its tenant.
template <typename T>
Json RecordOf(const T& owned) {
  Json j = ToJson(owned);
  j["tenant"] = owned.tenant;
  return j;
}

template <typename T>
void ReadRecord(const Json& j, T* owned) {
  FromJson(j, owned);
  JsonFieldReader{j}("tenant", owned->tenant);
}

Json RecordOf(const JobPlan& plan) {
  Json j = ToJson(plan);
  j["spec"] = RecordOf(plan.spec);
  if (plan.dataset) j["dataset"]["tenant"] = plan.dataset->tenant;
  if (plan.module) j["module"]["tenant"] = plan.module->tenant;
  for (size_t i = 0; i < plan.weights.size(); ++i) j["weights"][i]["tenant"] = plan.weights[i].tenant;
  return j;
}

void ReadRecord(const Json& j, JobPlan* plan) {
  FromJson(j, plan);
  ReadRecord(j.at("spec"), &plan->spec);
  if (!j.contains("target_units")) plan->spec.standardize.targets = false;  // older releases never did
  if (plan->dataset) JsonFieldReader{j["dataset"]}("tenant", plan->dataset->tenant);
  if (plan->module) JsonFieldReader{j["module"]}("tenant", plan->module->tenant);
  for (size_t i = 0; i < plan->weights.size(); ++i) JsonFieldReader{j["weights"][i]}("tenant", plan->weights[i].tenant);
}

Json RecordOf(const SegmentRecord& record) {
  Json j;
  SegmentRecord::StoredFields(record, JsonFieldWriter(&j));
  return j;
}

void ReadRecord(const Json& j, SegmentRecord* record) { SegmentRecord::StoredFields(*record, JsonFieldReader(j)); }

Json RecordOf(const BlobRef& ref) { return ToJson(ref); }
void ReadRecord(const Json& j, BlobRef* ref) { FromJson(j, ref); }
Json RecordOf(const ResumeProof& proof) { return ToJson(proof); }
void ReadRecord(const Json& j, ResumeProof* proof) { FromJson(j, proof); }
Json RecordOf(const DrawsOfChain& counts) { return counts; }
void ReadRecord(const Json& j, DrawsOfChain* counts) { FromJson(j, counts); }
Json RecordOf(const StoppedPoints& points) { return points; }
void ReadRecord(const Json& j, StoppedPoints* points) { FromJson(j, points); }

}  // namespace

template <IsRecord T>
std::string EncodeRecord(const T& value) {
  // Replaces invalid UTF-8 (for example in a host name), so that encoding never fails.
  return RecordOf(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <IsRecord T>
absl::StatusOr<T> DecodeRecord(const std::string& text) {
  try {
    T value;
    ReadRecord(Json::parse(text), &value);
    return value;
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat("a stored record cannot be read: ", error.what()));
  }
}

#define CHAINFLEET_RECORD(T)                   \
  template std::string EncodeRecord(const T&); \
  template absl::StatusOr<T> DecodeRecord(const std::string&);
CHAINFLEET_RECORD(JobPlan)
CHAINFLEET_RECORD(Dataset)
CHAINFLEET_RECORD(StoredModel)
CHAINFLEET_RECORD(SegmentRecord)
CHAINFLEET_RECORD(BlobRef)
CHAINFLEET_RECORD(ResumeProof)
CHAINFLEET_RECORD(DrawsOfChain)
CHAINFLEET_RECORD(StoppedPoints)
#undef CHAINFLEET_RECORD

}  // namespace chainfleet
