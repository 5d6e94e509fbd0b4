// The sampled model: a built-in network, a job's list of layers, a stored module, or an analytic potential. Shapes,
// parameter counts and memory are inferred here, without torch, to reject a bad model at submit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/domain/builtin_networks.h"
#include "core/domain/layer_spec.h"
#include "core/domain/likelihood_spec.h"
#include "core/domain/network_shape.h"
#include "core/domain/parameter_shape.h"
#include "core/domain/potential_spec.h"
#include "core/domain/stored_model.h"

namespace chainfleet {

// A network whose layers the job lists.
struct LayeredModel {
  LayerList layers;
  bool operator==(const LayeredModel&) const = default;
};

enum class ModelFormat { kTorchScript, kExported };
inline std::initializer_list<const char*> EnumNames(ModelFormat) {
  static constexpr std::initializer_list<const char*> kNames = {"torchscript", "exported"};
  return kNames;
}

// A network that a user stored under this name (stored_model.h). Only a worker that loads the file can tell whether it
// fits the data.
struct StoredNetworkModel {
  std::string name;
  ModelFormat format = ModelFormat::kExported;
  bool operator==(const StoredNetworkModel&) const = default;
};

struct ModelSpec {
  std::variant<BuiltinModel, PotentialKind, LayeredModel, StoredNetworkModel> kind;
  std::optional<LikelihoodKind> likelihood = {};  // networks only; none: categorical
  std::vector<std::string> sample = {};  // patterns of the sampled parameters of a .pt2 network; none: all are sampled
  bool is_network() const { return !std::holds_alternative<PotentialKind>(kind); }
  bool has_layers() const { return is_network() && !std::holds_alternative<StoredNetworkModel>(kind); }
  // True for networks and regressions: N examples, mini-batches, epochs, a prior. Others are the whole law, N = 1.
  bool has_data() const { return is_network() || IsRegression(std::get<PotentialKind>(kind)); }
  bool operator==(const ModelSpec&) const = default;
};

// "model.exported": the field of the job that names the stored network.
std::string PathOf(const StoredNetworkModel& stored);

// Returns the likelihood of a network: categorical unless the model names another.
LikelihoodKind LikelihoodOf(const ModelSpec& model);

// Returns the layers of a network. REQUIRES: the network has layers and has passed Validate.
LayerList LayersOf(const ModelSpec& model);

// Returns true if U(theta) of the network on a mini-batch depends on more than theta.
bool HasBatchNorm(const ModelSpec& model);

// Returns the network for inputs [input_shape...] (no batch dimension: {1, 28, 28}) and the outputs of its likelihood,
// whose own parameters come last. A stored network has only inputs and outputs, because its parameters are unknown
// here. `num_classes` is 0 for float32 targets. INVALID_ARGUMENT names the field path if the model is unknown, no
// network, or its shapes do not fit.
absl::StatusOr<NetworkShape> InferNetwork(const ModelSpec& model, const std::vector<int64_t>& input_shape,
                                          int64_t num_classes, const StoredModel* stored = nullptr);

// Returns the parameters of `model`, network or not, in layout order. Errors are those of InferNetwork.
absl::StatusOr<std::vector<ParameterShape>> InferParameters(const ModelSpec& model,
                                                            const std::vector<int64_t>& input_shape,
                                                            int64_t num_classes, const StoredModel* stored = nullptr);

// Returns violations with paths below "model" and "likelihood".
std::vector<FieldViolation> Validate(const ModelSpec& model);

}  // namespace chainfleet
