#include "core/wire/inference_outputs.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace chainfleet {
namespace {

template <typename T>
void AddRaw(const std::string& name, const char* datatype, const std::vector<int64_t>& shape,
            const std::vector<T>& values, inference::ModelInferResponse* response) {
  auto* output = response->add_outputs();
  output->set_name(name);
  output->set_datatype(datatype);
  output->mutable_shape()->Add(shape.begin(), shape.end());
  response->add_raw_output_contents(values.data(), values.size() * sizeof(T));
}

// Errors, of `size` values.
std::vector<double> KnownOrNaN(const std::vector<double>& errors, size_t size) {
  return errors.empty() ? std::vector<double>(size, std::numeric_limits<double>::quiet_NaN()) : errors;
}

void AddScore(const Prediction& prediction, const std::string& name, inference::ModelInferResponse* response) {
  const bool of_error = absl::EndsWith(name, kErrorSuffix);
  const auto add = [&]<typename S>(const S& scores) {
    for (const auto& array : S::kArrays) {
      if (absl::StripSuffix(name, kErrorSuffix) != array.name) continue;
      const std::vector<double>& score = scores.*array.values;
      std::vector<int64_t> shape = {prediction.num_rows};
      if (array.per_class) shape.push_back(NumClasses(prediction.targets));
      const auto* const errors = std::get_if<S>(&prediction.errors.of);  // the other sort if they are unknown
      const std::vector<double> known = errors != nullptr ? errors->*array.values : std::vector<double>();
      AddRaw(name, "FP64", shape, of_error ? KnownOrNaN(known, score.size()) : score, response);
    }
  };
  std::visit(add, prediction.scores.of);
}

void AddQuantiles(const Prediction& prediction, const std::string& name, inference::ModelInferResponse* response) {
  const std::vector<double>& quantiles = prediction.quantiles;
  const int64_t levels = static_cast<int64_t>(quantiles.size()) / std::max<int64_t>(prediction.num_rows, 1);
  AddRaw(name, "FP64", {prediction.num_rows, levels},
         name == kQuantiles ? quantiles : KnownOrNaN(prediction.quantile_errors, quantiles.size()), response);
}

// Adds the values of each draw, of `row_shape`. Ours are draws-major, outputs rows-major as the protocol batches them.
void AddMembers(const Prediction& prediction, const std::string& name, const std::vector<int64_t>& row_shape,
                const std::function<const std::vector<float>&(const Members&)>& values_of,
                inference::ModelInferResponse* response) {
  const int64_t rows = prediction.num_rows, width = NumValues(row_shape);
  int64_t num_draws = 0;
  for (const Members& members : prediction.members) num_draws += static_cast<int64_t>(members.weights.size());
  std::vector<float> values;
  values.reserve(static_cast<size_t>(rows * num_draws * width));
  for (int64_t row = 0; row < rows; ++row) {
    for (const Members& members : prediction.members) {
      const std::vector<float>& of = values_of(members);
      for (auto at = of.begin() + row * width; at < of.end(); at += std::min(rows * width, of.end() - at)) {
        values.insert(values.end(), at, at + width);
      }
    }
  }
  std::vector<int64_t> shape = {rows, num_draws};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  AddRaw(name, "FP32", shape, values, response);
}

std::vector<int64_t> PerClass(bool per_class, const Targets& targets) {
  return per_class ? std::vector<int64_t>{NumClasses(targets)} : std::vector<int64_t>{};
}

std::vector<int64_t> GradientShape(const Targets& targets, const std::vector<int64_t>& input_shape) {
  std::vector<int64_t> shape = PerClass(std::holds_alternative<Classes>(targets), targets);
  shape.insert(shape.end(), input_shape.begin(), input_shape.end());
  return shape;
}

void AddMeanGradient(const Prediction& prediction, const std::vector<int64_t>& row_shape,
                     inference::ModelInferResponse* response) {
  std::vector<int64_t> shape = {prediction.num_rows};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  AddRaw(kMeanGradient, "FP64", shape, prediction.mean_gradient, response);
}

}  // namespace

bool IsOfQuantiles(const std::string& output) { return output == kQuantiles || output == kQuantileErrors; }
bool IsGradient(const std::string& output) { return output == kMeanGradient || output == kMemberGradients; }
bool IsConformal(const std::string& output) { return output == kPredictionSet || output == kInterval; }

std::vector<InferenceTensor> InferenceInputs(const std::vector<int64_t>& input_shape, InputType type,
                                             const std::vector<TensorSignature>& columns) {
  if (columns.empty() || type == InputType::kUint8) {
    return {{"x", type == InputType::kUint8 ? "UINT8" : "FP32", input_shape}};
  }
  std::vector<InferenceTensor> inputs;
  for (const TensorSignature& column : columns) {
    const std::string type_of = !column.is_whole() ? "FP32" : absl::AsciiStrToUpper(column.type);  // INT64, INT32, BOOL
    inputs.push_back({column.name, type_of, column.shape});
  }
  return inputs;
}

std::vector<InferenceTensor> InferenceOutputs(const Targets& targets, const std::vector<int64_t>& input_shape) {
  const bool numbers = std::holds_alternative<Numbers>(targets);
  std::vector<InferenceTensor> outputs;
  for (const char* suffix : {"", kErrorSuffix}) {
    for (const auto& [score, per_class] : ScoresOfTarget(targets)) {
      outputs.push_back({absl::StrCat(score, suffix), "FP64", PerClass(per_class, targets)});
    }
  }
  for (const char* name : {kQuantiles, kQuantileErrors}) {
    if (numbers) outputs.push_back({name, "FP64", {-1}});
  }
  outputs.push_back(numbers ? InferenceTensor{kInterval, "FP64", {2}}
                            : InferenceTensor{kPredictionSet, "BOOL", {NumClasses(targets)}});
  const auto of_each_draw = [](std::vector<int64_t> row_shape) {
    row_shape.insert(row_shape.begin(), -1);
    return row_shape;
  };
  for (const auto& [output, per_class] : ArraysOf<Members::Outputs>(targets)) {
    outputs.push_back({absl::StrCat(kMemberPrefix, output), "FP32", of_each_draw(PerClass(per_class, targets))});
  }
  const std::vector<int64_t> gradient = GradientShape(targets, input_shape);
  outputs.push_back({kMeanGradient, "FP64", gradient});
  outputs.push_back({kMemberGradients, "FP32", of_each_draw(gradient)});
  return outputs;
}

int64_t RowBytes(const std::vector<std::string>& outputs, const Targets& targets, int64_t num_quantiles) {
  int64_t values = 0;
  for (const InferenceTensor& output : InferenceOutputs(targets)) {
    if (std::ranges::find(outputs, output.name) == outputs.end()) continue;
    if (IsOfQuantiles(output.name)) values += num_quantiles;
    if (std::ranges::count(output.row_shape, -1) > 0 || IsGradient(output.name)) continue;
    values += output.row_shape.empty() ? 1 : output.row_shape.front();
  }
  return values * static_cast<int64_t>(sizeof(double));
}

std::vector<std::string> UsualOutputs(const Targets& targets, bool errors, bool quantiles, bool conformal) {
  std::vector<std::string> names;
  for (const InferenceTensor& output : InferenceOutputs(targets)) {
    const bool is_error = absl::EndsWith(output.name, kErrorSuffix);
    if (absl::StartsWith(output.name, kMemberPrefix) || IsGradient(output.name) || (is_error && !errors)) continue;
    if ((IsOfQuantiles(output.name) && !quantiles) || (IsConformal(output.name) && !conformal)) continue;
    names.push_back(output.name);
  }
  return names;
}

absl::Status CheckOutputs(const std::vector<std::string>& outputs, const Targets& targets, bool quantiles,
                          bool conformal) {
  std::vector<std::string> names;
  for (const InferenceTensor& output : InferenceOutputs(targets)) names.push_back(output.name);
  std::set<std::string> asked;
  for (const std::string& output : outputs) {
    if (!asked.insert(output).second) {
      return absl::InvalidArgumentError(absl::StrCat("output '", output, "' is asked for twice"));
    }
    if (std::ranges::find(names, output) == names.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown output '", output, "': this model has ", absl::StrJoin(names, ", ")));
    }
    if (IsOfQuantiles(output) && !quantiles) {
      return absl::InvalidArgumentError(
          absl::StrCat("output '", output, "' needs the parameter 'quantiles', such as '0.05,0.5,0.95'"));
    }
    if (IsConformal(output) && !conformal) {
      return absl::InvalidArgumentError(
          absl::StrCat("output '", output,
                       "' needs the parameter 'conformal', the id of an evaluation with a calibration data set"));
    }
  }
  return absl::OkStatus();
}

// The protocol lets contents differ from the request's order; ours are in it.
void AddOutput(const Prediction& prediction, const std::string& name, const std::vector<int64_t>& input_shape,
               inference::ModelInferResponse* response) {
  if (IsOfQuantiles(name)) return AddQuantiles(prediction, name, response);
  if (name == kInterval) return AddRaw(name, "FP64", {prediction.num_rows, 2}, prediction.interval, response);
  if (name == kPredictionSet) {
    const std::vector<uint8_t> set(prediction.prediction_set.begin(), prediction.prediction_set.end());
    return AddRaw(name, "BOOL", {prediction.num_rows, NumClasses(prediction.targets)}, set, response);
  }
  const std::vector<int64_t> gradient = GradientShape(prediction.targets, input_shape);
  if (name == kMeanGradient) return AddMeanGradient(prediction, gradient, response);
  if (name == kMemberGradients) {
    const auto of = [](const Members& members) -> const std::vector<float>& { return members.gradients; };
    return AddMembers(prediction, name, gradient, of, response);
  }
  const auto add_members = [&]<typename Outputs>(const Outputs&) {
    for (const auto& array : Outputs::kArrays) {
      if (name != absl::StrCat(kMemberPrefix, array.name)) continue;
      const auto of = [&](const Members& members) -> const std::vector<float>& {
        return std::get<Outputs>(members.outputs).*array.values;
      };
      AddMembers(prediction, name, PerClass(array.per_class, prediction.targets), of, response);
    }
  };
  std::visit(add_members, EmptyOf<Members::Outputs>(prediction.targets));
  AddScore(prediction, name, response);
}

absl::Status CheckClassification(const std::string& output, const Targets& targets) {
  for (const InferenceTensor& known : InferenceOutputs(targets)) {
    if (known.name != output || IsGradient(output) || IsConformal(output)) continue;
    if (known.row_shape == std::vector{NumClasses(targets)}) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("output '", output, "' has no value for each class: 'classification' is of outputs [n, classes]"));
}

void KeepBestClasses(int64_t count, const std::vector<std::string>& class_names,
                     inference::ModelInferResponse* response) {
  auto* const output = response->mutable_outputs(response->outputs_size() - 1);
  std::string* const bytes = response->mutable_raw_output_contents(response->outputs_size() - 1);
  std::vector<double> values(bytes->size() / sizeof(double));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  std::vector<size_t> order(static_cast<size_t>(output->shape(1)));
  count = std::min(count, output->shape(1));
  bytes->clear();
  for (auto row = values.begin(); row < values.end(); row += std::ssize(order)) {
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(), [row](size_t k) { return row[static_cast<int64_t>(k)]; });
    for (const size_t k : std::span(order).first(static_cast<size_t>(count))) {
      std::string text = absl::StrCat(std::to_string(row[static_cast<int64_t>(k)]), ":", k);
      if (!class_names.empty()) absl::StrAppend(&text, ":", class_names[k]);
      const auto length = static_cast<uint32_t>(text.size());
      bytes->append(reinterpret_cast<const char*>(&length), sizeof length);
      bytes->append(text);
    }
  }
  output->set_datatype("BYTES");
  output->set_shape(1, count);
}

std::string NamesOfMembers(const Prediction& prediction) {
  return absl::StrJoin(prediction.members, ",", [](std::string* out, const Members& members) {
    absl::StrAppend(out, members.chain.index, "/", ToString(members.kind), ":", members.weights.size());
  });
}

std::string WeightsOfMembers(const Prediction& prediction) {
  return absl::StrJoin(prediction.members, ",", [](std::string* out, const Members& members) {
    absl::StrAppend(out, absl::StrJoin(members.weights, ","));
  });
}

}  // namespace chainfleet
