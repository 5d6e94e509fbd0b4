#include "core/domain/wire_bytes.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace chainfleet {
namespace {

constexpr int64_t kNumber = 12;   // with its tag
constexpr int64_t kMessage = 12;  // tag and length
constexpr int64_t kRest = 4096;   // fields of a spec that are numbers or short names
constexpr int64_t kObject = 512;  // name, digest and size of a stored object
constexpr int64_t kInList = 10;   // a number of a packed list

// Visits the fields of a settings struct.
struct Count {
  int64_t* bytes;

  template <typename T, typename... Bounds>
  void operator()(const char*, const T&, const Bounds&...) const {
    *bytes += kNumber;
  }
  template <typename T, typename... Bounds>
  void operator()(const char*, const std::vector<T>& list, const Bounds&...) const {
    *bytes += kMessage + kInList * static_cast<int64_t>(list.size());
  }
  template <typename... Bounds>
  void operator()(const char*, const std::string& text, const Bounds&...) const {
    *bytes += kMessage + static_cast<int64_t>(text.size());
  }
  template <typename... Bounds>
  void operator()(const char* name, const std::vector<std::string>& texts, const Bounds&...) const {
    for (const std::string& text : texts) (*this)(name, text);
  }
  template <typename... Bounds>
  void operator()(const char*, const std::map<std::string, double>& numbers, const Bounds&...) const {
    for (const auto& [name, number] : numbers) *bytes += 2 * kMessage + kNumber + static_cast<int64_t>(name.size());
  }
};

template <typename Variant>
void CountKind(const Variant& kind, int64_t* bytes) {
  *bytes += kMessage;
  std::visit([&](const auto& spec) { spec.Fields(spec, Count{bytes}); }, kind);
}

void CountLayers(const LayerList& layers, int64_t* bytes) {
  for (const LayerSpec& layer : layers) {
    *bytes += 2 * kMessage;
    CountKind(layer.kind, bytes);
    ForEachList(layer, [&](const char*, const LayerList& list) { CountLayers(list, bytes); });
  }
}

}  // namespace

int64_t WireBytes(const JobSpec& spec) {
  int64_t bytes = kRest + static_cast<int64_t>(spec.name.size() + spec.dataset.size());
  if (const auto* layered = std::get_if<LayeredModel>(&spec.model.kind)) CountLayers(layered->layers, &bytes);
  if (const auto* potential = std::get_if<PotentialKind>(&spec.model.kind)) CountKind(*potential, &bytes);
  if (const auto* builtin = std::get_if<BuiltinModel>(&spec.model.kind)) {
    bytes += kInList * static_cast<int64_t>(builtin->hidden.size());
  }
  CountKind(spec.prior.kind, &bytes);
  CountKind(spec.sampler.kind, &bytes);
  SweepSpec::Fields(spec.sweep, Count{&bytes});
  InitSpec::Fields(spec.init, Count{&bytes});
  Count{&bytes}("sample", spec.model.sample);
  return bytes;
}

int64_t WireBytes(const Dataset& dataset) {
  const size_t channels = dataset.normalisation.mean.size() + dataset.normalisation.stddev.size();
  int64_t names = 0;
  for (const auto* list : {&dataset.class_names, &dataset.warnings}) {
    for (const std::string& text : *list) names += kMessage + static_cast<int64_t>(text.size());
  }
  return kRest + names + kInList * static_cast<int64_t>(channels + dataset.input_shape.size()) +
         kObject * static_cast<int64_t>(dataset.shards.size());
}

int64_t WireBytes(const StoredModel& model) {
  int64_t bytes = kRest;
  if (!model.signature) return bytes;
  const NetworkSignature& network = *model.signature;
  for (const auto* tensors : {&network.inputs, &network.parameters, &network.statistics}) {
    for (const TensorSignature& tensor : *tensors) {
      bytes += 2 * kMessage + kObject + static_cast<int64_t>(tensor.name.size()) +
               kInList * static_cast<int64_t>(tensor.shape.size());
    }
  }
  return bytes;
}

int64_t WireBytes(const JobPlan& plan) {
  const size_t channels = plan.normalisation.mean.size() + plan.normalisation.stddev.size();
  int64_t weights = 0;
  for (const StoredModel& file : plan.weights) weights += WireBytes(file);
  return WireBytes(plan.spec) + (plan.dataset ? WireBytes(*plan.dataset) : 0) +
         (plan.module ? WireBytes(*plan.module) : 0) + weights + kInList * static_cast<int64_t>(channels);
}

}  // namespace chainfleet
