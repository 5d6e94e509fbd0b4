#include "core/wire/inference_outputs.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace chainfleet {
namespace {

// One array of single draws, and the numbers it has for a row of a draw: K, or one.
struct MemberField {
  const char* name;
  std::vector<float> Members::*values;
  bool of_classes;
};
constexpr MemberField kMemberFields[] = {{"member_probabilities", &Members::probabilities, true},
                                         {"member_mean", &Members::mean, false},
                                         {"member_variance", &Members::variance, false}};

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
  const std::string of(absl::StripSuffix(name, kErrorSuffix));
  const auto fields = ScoresOfTarget(prediction.targets);
  const auto field = std::ranges::find(fields, of, [](const ScoreField& f) { return std::string(f.name); });
  const bool of_error = absl::EndsWith(name, kErrorSuffix);
  const std::vector<double>& score = prediction.scores.*field->values;
  std::vector<int64_t> shape = {prediction.num_rows};
  if (field->per_class) shape.push_back(NumClasses(prediction.targets));
  AddRaw(name, "FP64", shape, of_error ? KnownOrNaN(prediction.errors.*field->values, score.size()) : score, response);
}

void AddQuantiles(const Prediction& prediction, const std::string& name, inference::ModelInferResponse* response) {
  const std::vector<double>& quantiles = prediction.quantiles;
  const int64_t levels = static_cast<int64_t>(quantiles.size()) / std::max<int64_t>(prediction.num_rows, 1);
  AddRaw(name, "FP64", {prediction.num_rows, levels},
         name == kQuantiles ? quantiles : KnownOrNaN(prediction.quantile_errors, quantiles.size()), response);
}

// Ours are draws-major, outputs rows-major as the protocol batches them.
void AddMembers(const Prediction& prediction, const MemberField& field, inference::ModelInferResponse* response) {
  const int64_t rows = prediction.num_rows, width = field.of_classes ? NumClasses(prediction.targets) : 1;
  int64_t num_draws = 0;
  for (const Members& members : prediction.members) num_draws += static_cast<int64_t>(members.weights.size());
  std::vector<float> values;
  values.reserve(static_cast<size_t>(rows * num_draws * width));
  for (int64_t row = 0; row < rows; ++row) {
    for (const Members& members : prediction.members) {
      const std::vector<float>& of = members.*field.values;
      for (auto at = of.begin() + row * width; at < of.end(); at += std::min(rows * width, of.end() - at)) {
        values.insert(values.end(), at, at + width);
      }
    }
  }
  std::vector<int64_t> shape = {rows, num_draws};
  if (field.of_classes) shape.push_back(width);
  AddRaw(field.name, "FP32", shape, values, response);
}

}  // namespace

bool IsOfQuantiles(const std::string& output) { return output == kQuantiles || output == kQuantileErrors; }

std::vector<InferenceTensor> InferenceInputs(const std::vector<int64_t>& input_shape, InputType type) {
  return {{"x", type == InputType::kUint8 ? "UINT8" : "FP32", input_shape}};
}

std::vector<InferenceTensor> InferenceOutputs(const Targets& targets) {
  const bool numbers = std::holds_alternative<Numbers>(targets);
  const int64_t num_classes = NumClasses(targets);
  std::vector<InferenceTensor> outputs;
  for (const char* suffix : {"", kErrorSuffix}) {
    for (const ScoreField& field : ScoresOfTarget(targets)) {
      const auto row_shape = field.per_class ? std::vector<int64_t>{num_classes} : std::vector<int64_t>{};
      outputs.push_back({absl::StrCat(field.name, suffix), "FP64", row_shape});
    }
  }
  for (const char* name : {kQuantiles, kQuantileErrors}) {
    if (numbers) outputs.push_back({name, "FP64", {-1}});
  }
  for (const MemberField& field : kMemberFields) {
    if (field.of_classes == numbers) continue;
    const auto row_shape = field.of_classes ? std::vector<int64_t>{-1, num_classes} : std::vector<int64_t>{-1};
    outputs.push_back({field.name, "FP32", row_shape});
  }
  return outputs;
}

int64_t RowBytes(const std::vector<std::string>& outputs, const Targets& targets, int64_t num_quantiles) {
  int64_t values = 0;
  for (const InferenceTensor& output : InferenceOutputs(targets)) {
    if (std::ranges::find(outputs, output.name) == outputs.end()) continue;
    if (IsOfQuantiles(output.name)) values += num_quantiles;
    if (std::ranges::count(output.row_shape, -1) > 0) continue;
    values += output.row_shape.empty() ? 1 : output.row_shape.front();
  }
  return values * static_cast<int64_t>(sizeof(double));
}

std::vector<std::string> UsualOutputs(const Targets& targets, bool errors, bool quantiles) {
  std::vector<std::string> names;
  for (const InferenceTensor& output : InferenceOutputs(targets)) {
    const bool is_error = absl::EndsWith(output.name, kErrorSuffix);
    if (absl::StartsWith(output.name, kMemberPrefix) || (is_error && !errors)) continue;
    if (IsOfQuantiles(output.name) && !quantiles) continue;
    names.push_back(output.name);
  }
  return names;
}

absl::Status CheckOutputs(const std::vector<std::string>& outputs, const Targets& targets, bool quantiles) {
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
  }
  return absl::OkStatus();
}

// The protocol lets contents differ from the request's order; ours are in it.
void AddOutput(const Prediction& prediction, const std::string& name, inference::ModelInferResponse* response) {
  const auto* member = std::ranges::find(kMemberFields, name, [](const MemberField& f) { return std::string(f.name); });
  if (member != std::end(kMemberFields)) return AddMembers(prediction, *member, response);
  if (IsOfQuantiles(name)) return AddQuantiles(prediction, name, response);
  AddScore(prediction, name, response);
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
