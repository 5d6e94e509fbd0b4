#include "core/domain/network_signature.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/saturating.h"

namespace chainfleet {
namespace {

constexpr char kFloat[] = "float32";

std::string Render(const TensorSignature& batch) {
  return absl::StrCat(batch.type, " [n", batch.shape.empty() ? "" : ", ", absl::StrJoin(batch.shape, ", "), "]");
}

bool Is(const TensorSignature& given, const std::vector<int64_t>& shape) {
  return given.type == kFloat && given.shape == shape;
}

bool IsReadable(const TensorSignature& input) {
  return input.type == kFloat || input.type == "int64" || input.type == "int32" || input.type == "bool";
}

std::string Bracketed(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// Names the first of a few.
std::string Few(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  const std::vector<std::string> shown(names.begin(), names.begin() + std::min(names.size(), kShown));
  const std::string more = names.size() > kShown ? absl::StrCat(" and ", names.size() - kShown, " more") : "";
  return absl::StrJoin(shown, ", ") + more;
}

// Goes back to the last * only, so the time is at most the product of the lengths.
bool Matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, tried = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      tried = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++tried;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<FieldViolation> WithoutMatch(const std::vector<std::string>& patterns,
                                         const std::vector<TensorSignature>& parameters) {
  std::vector<FieldViolation> violations;
  std::vector<std::string> names;
  for (const TensorSignature& parameter : parameters) names.push_back(parameter.name);
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (std::ranges::any_of(names, [&](const std::string& name) { return Matches(patterns[i], name); })) continue;
    violations.push_back({absl::StrCat("sample[", i, "]"),
                          absl::StrCat(patterns[i], " matches no parameter of the network, which has ", Few(names))});
  }
  return violations;
}

constexpr std::string_view kDraws = "theta/";

bool HasDraws(const TensorSignature& tensor) { return tensor.name.starts_with(kDraws) && !tensor.shape.empty(); }

// Returns the tensors of one draw if `tensors` are those of a chain's draws, "theta/NAME" [draw, ...]; else `tensors`.
std::vector<TensorSignature> OfOneDraw(const std::vector<TensorSignature>& tensors) {
  std::vector<TensorSignature> drawn;
  for (const TensorSignature& tensor : tensors) {
    if (!HasDraws(tensor)) continue;
    drawn.push_back({tensor.name.substr(kDraws.size()), tensor.type, {tensor.shape.begin() + 1, tensor.shape.end()}});
  }
  return drawn.empty() ? tensors : drawn;
}

bool IsCalledAParameter(const std::string& name) {
  return name == "weight" || name == "bias" || name.ends_with(".weight") || name.ends_with(".bias");
}

}  // namespace

bool IsSampled(const std::string& name, const std::vector<std::string>& patterns) {
  return patterns.empty() ||
         std::ranges::any_of(patterns, [&](const std::string& pattern) { return Matches(pattern, name); });
}

int64_t ActivationBytes(const NetworkSignature& network, const std::vector<std::string>& sample) {
  if (sample.empty()) return network.activation_bytes_per_row;
  int64_t bytes = 0;
  for (const TensorSignature& parameter : network.parameters) {
    if (IsSampled(parameter.name, sample)) bytes = std::max(bytes, parameter.activation_bytes_per_row);
  }
  return bytes;
}

std::string WhyUnread(const std::vector<TensorSignature>& inputs, const std::vector<int64_t>& row) {
  std::vector<int64_t> wanted = {0};
  std::vector<std::string> names;
  for (const TensorSignature& input : inputs) {
    wanted[0] = SaturatingAdd(wanted[0], NumValues(input.shape));
    names.push_back(Render(input));
  }
  if (inputs.size() == 1) wanted = inputs[0].shape;
  if (!inputs.empty() && row == wanted && std::ranges::all_of(inputs, IsReadable)) return "";
  const std::string rows = inputs.size() > 1 ? absl::StrCat(" in rows ", Render({"", kFloat, wanted})) : "";
  return absl::StrCat("the network takes ", absl::StrJoin(names, " and "), rows, ", the data set has ",
                      Render({"", kFloat, row}));
}

int64_t NumDrawsOf(const std::vector<TensorSignature>& tensors) {
  const auto drawn = std::ranges::find_if(tensors, HasDraws);
  return drawn == tensors.end() ? 0 : drawn->shape.front();
}

bool HasTensor(const std::vector<TensorSignature>& tensors, const std::string& name) {
  return std::ranges::count(OfOneDraw(tensors), name, &TensorSignature::name) > 0;
}

std::string WhyNoStart(const std::vector<TensorSignature>& tensors, const std::vector<ParameterShape>& parameters) {
  const std::vector<TensorSignature> of_start = OfOneDraw(tensors);
  std::map<std::string, const TensorSignature*> unused;
  for (const TensorSignature& tensor : of_start) unused[tensor.name] = &tensor;
  std::vector<std::string> missing, strange;
  for (const ParameterShape& parameter : parameters) {
    const auto found = unused.extract(parameter.name);
    if (found.empty()) {
      if (!parameter.name.starts_with("likelihood.")) missing.push_back(parameter.name);
    } else if (found.mapped()->shape != parameter.shape || found.mapped()->type.find("float") == std::string::npos) {
      return absl::StrCat("has ", parameter.name, " as ", found.mapped()->type, " ", Bracketed(found.mapped()->shape),
                          "; the network has float32 ", Bracketed(parameter.shape));
    }
  }
  if (!missing.empty()) return absl::StrCat("lacks ", Few(missing), " of the network");
  for (const auto& [name, tensor] : unused) {
    if (IsCalledAParameter(name)) strange.push_back(name);
  }
  return strange.empty() ? "" : absl::StrCat("has ", Few(strange), ", which the job does not sample");
}

absl::StatusOr<std::vector<ParameterShape>> ParametersOf(const NetworkSignature& network,
                                                         const std::vector<int64_t>& input_shape, int64_t num_outputs,
                                                         const std::string& path,
                                                         const std::vector<std::string>& sample) {
  const auto refused = [&](const std::string& why) { return InvalidFields({{path, why}}); };
  if (const std::string why = WhyUnread(network.inputs, input_shape); !why.empty()) return refused(why);
  if (!Is(network.output, {num_outputs})) {
    return refused(absl::StrCat("the network gives ", Render(network.output), ", the likelihood needs ",
                                Render({"", kFloat, {num_outputs}})));
  }
  std::vector<ParameterShape> parameters;
  for (const TensorSignature& tensor : network.parameters) {
    if (tensor.type != kFloat || NumValues(tensor.shape) < 1) {
      return refused(absl::StrCat("parameter ", tensor.name, " is ", tensor.type, " [",
                                  absl::StrJoin(tensor.shape, ", "), "]; parameters are float32 and not empty"));
    }
    if (!IsSampled(tensor.name, sample)) continue;
    parameters.push_back({.name = tensor.name, .shape = tensor.shape, .offset = NumParameters(parameters)});
  }
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(WithoutMatch(sample, network.parameters)));
  if (parameters.empty()) return refused("the network has no parameters to sample");
  return parameters;
}

}  // namespace chainfleet
