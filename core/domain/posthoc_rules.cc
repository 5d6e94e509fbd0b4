#include "core/domain/posthoc_rules.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "core/base/saturating.h"
#include "core/domain/network_signature.h"

namespace chainfleet {
namespace {

using Violations = std::vector<FieldViolation>;

constexpr char kNoSecond[] = "drops the inputs of linear and convolution layers but the first: the model has no second";

void ForEachLayer(const LayerList& layers, const std::function<void(const LayerSpec&)>& see) {
  for (const LayerSpec& layer : layers) {
    see(layer);
    ForEachList(layer, [&](const char*, const LayerList& inner) { ForEachLayer(inner, see); });
  }
}

bool IsGrouped(const LayerSpec& layer) {
  const auto* conv = std::get_if<ConvLayer>(&layer.kind);
  return conv != nullptr && conv->groups != 1;
}

template <typename... Kinds>
bool IsAny(const LayerSpec& layer) {
  return (std::holds_alternative<Kinds>(layer.kind) || ...);
}

bool HasWeights(const LayerSpec& layer) { return IsAny<ConvLayer, LinearLayer, Conv1dLayer>(layer); }

// Weights that multiply no input, or several at once.
bool HasTables(const LayerSpec& layer) { return IsAny<EmbeddingLayer, PositionLayer, AttentionLayer>(layer); }

// Parameters beyond one weight, and its bias, that multiplies rows of inputs.
bool HasOtherParameters(const LayerSpec& layer) {
  return IsAny<FrnLayer, LayerNormLayer, GroupNormLayer>(layer) || HasTables(layer) || IsGrouped(layer);
}

Violations Validate(const McDropoutSpec&, const JobSpec& spec) {
  int weights = 0, grouped = 0, tables = 0;
  if (spec.model.has_layers()) {
    ForEachLayer(LayersOf(spec.model), [&](const LayerSpec& layer) {
      weights += HasWeights(layer);
      grouped += IsGrouped(layer);
      tables += HasTables(layer);
    });
  }
  Violations violations;
  const auto* stored = std::get_if<StoredNetworkModel>(&spec.model.kind);
  if (stored != nullptr && stored->format == ModelFormat::kTorchScript) {
    violations.push_back({"sampler.mc_dropout",
                          "drops inputs of layers, which a TorchScript module does not show: export the network as a "
                          ".pt2 file"});
  } else if (stored == nullptr && weights < 2) {
    violations.push_back({"sampler.mc_dropout", kNoSecond});
  }
  if (tables > 0) {
    violations.push_back({"sampler.mc_dropout",
                          "drops inputs of linear and convolution layers, the model has an embedding, positions or "
                          "attention, too: take dropout layers and another sampler"});
  }
  if (grouped > 0) {
    violations.push_back(
        {"sampler.mc_dropout", "drops channels of ungrouped convolutions, the model has grouped ones"});
  }
  if (!spec.prior.is_flat() && spec.prior.precision() == 0) {
    violations.push_back({"prior", "mc_dropout takes a Gaussian prior of one precision, or none"});
  }
  return violations;
}

// The likelihood alone has directions without curvature (adding one number to all logits). Without a prior the Gaussian
// would be unbounded there.
bool IsProper(const PriorSpec& prior) {
  const auto* gaussian = std::get_if<GaussianPrior>(&prior.kind);
  return gaussian != nullptr && gaussian->precision > 0 &&
         std::all_of(gaussian->layers.begin(), gaussian->layers.end(), [](const auto& own) { return own.second > 0; });
}

Violations Validate(const LaplaceSpec& laplace, const JobSpec& spec) {
  Violations violations;
  const bool kronecker = laplace.structure == CurvatureStructure::kKronecker;
  if (spec.model.has_data() && !IsProper(spec.prior)) {
    violations.push_back({"prior", "laplace needs a Gaussian prior with precisions above 0"});
  }
  if (spec.model.is_network() && !spec.model.has_layers()) {
    if (kronecker) {
      violations.push_back({"sampler.laplace.structure",
                            "kronecker needs the layers, which a stored network does not show: take diagonal or full"});
    }
    return violations;
  }
  if (spec.model.is_network()) {
    bool other = false;
    ForEachLayer(LayersOf(spec.model), [&](const LayerSpec& layer) { other |= HasOtherParameters(layer); });
    if (kronecker && other) {
      violations.push_back({"sampler.laplace.structure",
                            "kronecker knows linear and ungrouped convolution layers, the model has others with "
                            "parameters: take diagonal"});
    }
    if (kronecker && !ParametersOf(LikelihoodOf(spec.model)).empty()) {
      violations.push_back(
          {"sampler.laplace.structure",
           "kronecker covers layer parameters only, and this likelihood has a learned variance: choose full "
           "or diagonal"});
    }
    return violations;
  }
  if (std::holds_alternative<GaussianMixturePotential>(std::get<PotentialKind>(spec.model.kind))) {
    violations.push_back({"sampler.laplace", "needs a model or density with a curvature, a mixture has none here"});
  } else if (kronecker) {
    violations.push_back({"sampler.laplace.structure", "kronecker is for networks: take full or diagonal"});
  }
  return violations;
}

}  // namespace

bool AveragesSnapshots(const SamplerSpec& sampler) {
  return std::holds_alternative<SwaSpec>(sampler.kind) || std::holds_alternative<SwagSpec>(sampler.kind);
}

std::vector<FieldViolation> ValidateSnapshots(const JobSpec& spec, const std::vector<StoredModel>& weights) {
  Violations violations;
  if (!AveragesSnapshots(spec.sampler) || spec.num_epochs.value_or(spec.num_steps.value_or(1)) > 0) return violations;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (NumDrawsOf(weights[i].signature->parameters) > 1) continue;
    violations.push_back({absl::StrCat("init.weights[", i, "]"),
                          absl::StrCat(weights[i].name, " has one network, a job of 0 steps averages several: give ",
                                       "a file of two draws or more, theta/NAME [draw, ...]")});
  }
  return violations;
}

std::vector<FieldViolation> ValidatePostHoc(const JobSpec& spec) {
  if (const auto* dropout = std::get_if<McDropoutSpec>(&spec.sampler.kind)) return Validate(*dropout, spec);
  if (const auto* laplace = std::get_if<LaplaceSpec>(&spec.sampler.kind)) return Validate(*laplace, spec);
  return {};
}

std::vector<FieldViolation> ValidatePostHocSize(const SamplerSpec& sampler,
                                                const std::vector<ParameterShape>& parameters) {
  const auto is_weight = [](const ParameterShape& parameter) { return parameter.shape.size() > 1; };
  if (std::holds_alternative<McDropoutSpec>(sampler.kind) && std::ranges::count_if(parameters, is_weight) < 2) {
    return {{"sampler.mc_dropout", kNoSecond}};
  }
  const auto* laplace = std::get_if<LaplaceSpec>(&sampler.kind);
  const int64_t size = NumParameters(parameters);
  if (laplace == nullptr || laplace->structure != CurvatureStructure::kFull || size <= kMaxFullCurvatureParameters) {
    return {};
  }
  return {{"sampler.laplace.structure", absl::StrCat("full is for up to ", kMaxFullCurvatureParameters,
                                                     " parameters, the model has ", size, ": take kronecker")}};
}

int64_t CurvatureBytes(const SamplerSpec& sampler, const std::vector<ParameterShape>& parameters) {
  const auto* laplace = std::get_if<LaplaceSpec>(&sampler.kind);
  if (laplace == nullptr) return 0;
  const int64_t size = NumParameters(parameters);
  int64_t doubles = laplace->structure == CurvatureStructure::kDiagonal ? size : 0;
  if (laplace->structure == CurvatureStructure::kFull) doubles = SaturatingMultiply(size, size);
  if (laplace->structure == CurvatureStructure::kKronecker) {
    for (const ParameterShape& parameter : parameters) {
      if (parameter.shape.size() < 2) continue;
      const int64_t outputs = parameter.shape[0], inputs = SaturatingAdd(NumValues(parameter.shape) / outputs, 1);
      doubles = SaturatingAdd(doubles, SaturatingMultiply(outputs, outputs));
      doubles = SaturatingAdd(doubles, SaturatingMultiply(inputs, inputs));
    }
  }
  constexpr int64_t kSumsAndFactors = 2;
  return SaturatingMultiply(kSumsAndFactors * sizeof(double), doubles);
}

}  // namespace chainfleet
