#include "core/domain/model_spec.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/ids.h"
#include "core/base/saturating.h"

namespace chainfleet {
namespace {

// Appends parameters to the network's own and moves the statistics behind them.
void AddParameters(const std::vector<ParameterShape>& more, NetworkShape* network) {
  const int64_t start = NumParameters(network->parameters), size = NumParameters(more);
  for (ParameterShape parameter : more) {
    parameter.offset = SaturatingAdd(parameter.offset, start);
    network->parameters.push_back(std::move(parameter));
  }
  for (ParameterShape& statistic : network->statistics) statistic.offset = SaturatingAdd(statistic.offset, size);
}

std::vector<FieldViolation> ValidateSample(const ModelSpec& model) {
  constexpr size_t kMaxPatterns = 64, kMaxPatternBytes = 128;
  if (model.sample.empty()) return {};
  const auto* stored = std::get_if<StoredNetworkModel>(&model.kind);
  if (stored == nullptr || stored->format != ModelFormat::kExported)
    return {{"sample", "is for networks of torch.export: take model.exported, whose file has the other values"}};
  if (model.sample.size() > kMaxPatterns) {
    return {{"sample", absl::StrCat("must have at most ", kMaxPatterns, " names, has ", model.sample.size())}};
  }
  std::vector<FieldViolation> violations;
  for (size_t i = 0; i < model.sample.size(); ++i) {
    if (model.sample[i].empty() || model.sample[i].size() > kMaxPatternBytes) {
      violations.push_back(
          {absl::StrCat("sample[", i, "]"),
           absl::StrCat("must have 1 to ", kMaxPatternBytes, " characters, has ", model.sample[i].size())});
    }
  }
  return violations;
}

}  // namespace

std::string PathOf(const StoredNetworkModel& stored) { return "model." + EnumName(stored.format); }

LikelihoodKind LikelihoodOf(const ModelSpec& model) { return model.likelihood.value_or(CategoricalLikelihood()); }

LayerList LayersOf(const ModelSpec& model) {
  if (const auto* layered = std::get_if<LayeredModel>(&model.kind)) return layered->layers;
  return BuiltinLayers(std::get<BuiltinModel>(model.kind));
}

bool HasBatchNorm(const ModelSpec& model) { return model.has_layers() && HasBatchNorm(LayersOf(model)); }

absl::StatusOr<NetworkShape> InferNetwork(const ModelSpec& model, const std::vector<int64_t>& input_shape,
                                          int64_t num_classes, const StoredModel* stored) {
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(Validate(model)));
  if (!model.is_network()) return absl::InvalidArgumentError("model: an analytic potential has no layers");
  const LikelihoodKind likelihood = LikelihoodOf(model);
  const int64_t outputs = NumOutputs(likelihood, num_classes);
  const bool categorical = std::holds_alternative<CategoricalLikelihood>(likelihood);
  if (outputs < (categorical ? 2 : 1) || input_shape.empty() || NumValues(input_shape) < 1) {
    return InvalidFields(
        {{"dataset.name",
          absl::StrCat("a network needs inputs and at least 2 classes, the data set has inputs [",
                       absl::StrJoin(input_shape, ", "), "] and ", num_classes, " classes: name another data set")}});
  }
  if (const auto* file = std::get_if<StoredNetworkModel>(&model.kind)) {
    NetworkShape network{.input_shape = input_shape, .num_outputs = outputs};
    if (stored == nullptr || !stored->signature) return network;
    CHAINFLEET_ASSIGN_OR_RETURN(network.parameters,
                                ParametersOf(*stored->signature, input_shape, outputs, PathOf(*file), model.sample));
    AddParameters(ParametersOf(likelihood), &network);
    return network;
  }
  absl::StatusOr<NetworkShape> network = InferNetwork(LayersOf(model), input_shape, outputs, "model.layers");
  if (network.ok()) AddParameters(ParametersOf(likelihood), &*network);
  const auto* builtin = std::get_if<BuiltinModel>(&model.kind);
  if (network.ok() || builtin == nullptr) return network;
  // A built-in network reports at model.builtin, because the user did not write its layers.
  std::vector<FieldViolation> violations = FieldViolationsOf(network.status());
  for (FieldViolation& violation : violations) {
    violation = {"model.builtin", absl::StrCat(builtin->name, " does not fit inputs [",
                                               absl::StrJoin(input_shape, ", "), "]: ", violation.message)};
  }
  return InvalidFields(violations);
}

absl::StatusOr<std::vector<ParameterShape>> InferParameters(const ModelSpec& model,
                                                            const std::vector<int64_t>& input_shape,
                                                            int64_t num_classes, const StoredModel* stored) {
  if (model.is_network()) {
    CHAINFLEET_ASSIGN_OR_RETURN(NetworkShape network, InferNetwork(model, input_shape, num_classes, stored));
    return std::move(network.parameters);
  }
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(Validate(model)));
  if (model.has_data() && (input_shape.empty() || NumValues(input_shape) < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a regression needs inputs, the data set has inputs [", absl::StrJoin(input_shape, ", "), "]"));
  }
  return ParametersOf(std::get<PotentialKind>(model.kind), input_shape);
}

std::vector<FieldViolation> Validate(const ModelSpec& model) {
  std::vector<FieldViolation> violations = ValidateSample(model);
  const auto append = [&](const std::vector<FieldViolation>& more) {
    violations.insert(violations.end(), more.begin(), more.end());
  };
  if (const auto* builtin = std::get_if<BuiltinModel>(&model.kind)) {
    append(Validate(*builtin));
  } else if (const auto* layered = std::get_if<LayeredModel>(&model.kind)) {
    append(Validate(layered->layers, "model.layers"));
  } else if (const auto* stored = std::get_if<StoredNetworkModel>(&model.kind)) {
    append(FieldViolationsOf(CheckReference("model", stored->name, PathOf(*stored))));
  } else {
    append(Validate(std::get<PotentialKind>(model.kind)));
    if (model.likelihood) violations.push_back({"likelihood", "an analytic potential has its own: leave it out"});
    return violations;
  }
  append(Validate(LikelihoodOf(model)));
  return violations;
}

}  // namespace chainfleet
