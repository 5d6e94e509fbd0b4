#include "core/wire/inference_wire.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/limits.h"
#include "core/domain/parameter_shape.h"
#include "core/wire/inference_outputs.h"
#include "core/wire/inference_parameters.h"
#include "core/wire/inference_tensor.h"

namespace chainfleet {
namespace {

constexpr char kInput[] = "x";

absl::Status OtherInputs(const inference::ModelInferRequest& request, const std::vector<TensorSignature>& columns) {
  std::vector<std::string> given, wanted;
  for (const auto& input : request.inputs()) given.push_back(absl::StrCat("'", input.name(), "'"));
  for (const TensorSignature& column : columns) wanted.push_back(absl::StrCat("'", column.name, "'"));
  const std::string named =
      columns.empty() ? "" : absl::StrCat("[", absl::StrJoin(wanted, ", "), "], or rows of all of them as ");
  return absl::InvalidArgumentError(
      absl::StrCat("the inputs are [", absl::StrJoin(given, ", "), "]: ", named, "one input, 'x', is expected"));
}

// Puts the inputs into rows [n, sum of their sizes].
absl::StatusOr<InputTensor> TakeColumns(inference::ModelInferRequest* request,
                                        const std::vector<TensorSignature>& columns) {
  std::map<std::string, int> places;
  for (int i = 0; i < request->inputs_size(); ++i) places[request->inputs(i).name()] = i;
  const bool all = std::ranges::all_of(columns, [&](const auto& column) { return places.contains(column.name); });
  if (!all) return OtherInputs(*request, columns);
  int64_t row_bytes = 0;
  for (const TensorSignature& column : columns) row_bytes += NumValues(column.shape) * int64_t{sizeof(float)};
  const auto& first = request->inputs(places[columns[0].name]);
  const int64_t rows = first.shape_size() > 0 ? first.shape(0) : 0, most = limits::kMaxMessageBytes / row_bytes;
  if (rows > most) {  // a mask is a quarter of its float32
    return absl::InvalidArgumentError(
        absl::StrCat("the inputs have ", rows, " rows of ", row_bytes, " bytes as float32: send at most ", most));
  }
  std::vector<InputTensor> parts;
  for (const TensorSignature& column : columns) {
    const int at = places[column.name];
    std::vector<int64_t> shape = column.shape;
    shape.insert(shape.begin(), rows);
    if (!std::ranges::equal(request->inputs(at).shape(), shape)) {
      return absl::InvalidArgumentError(absl::StrCat("input '", column.name, "' has shape [",
                                                     absl::StrJoin(request->inputs(at).shape(), ", "), "]: [",
                                                     absl::StrJoin(shape, ", "), "] is expected"));
    }
    std::string* const raw = request->raw_input_contents_size() > 0 ? request->mutable_raw_input_contents(at) : nullptr;
    CHAINFLEET_ASSIGN_OR_RETURN(parts.emplace_back(), ColumnFromProto(request->inputs(at), raw));
  }
  InputTensor input{.type = InputType::kFloat32, .shape = {rows, row_bytes / int64_t{sizeof(float)}}};
  input.bytes.reserve(static_cast<size_t>(rows * row_bytes));
  for (int64_t row = 0; row < rows; ++row) {
    for (const InputTensor& part : parts) {
      const size_t bytes = part.bytes.size() / static_cast<size_t>(rows);
      input.bytes.append(part.bytes, static_cast<size_t>(row) * bytes, bytes);
    }
  }
  return input;
}

absl::StatusOr<InputTensor> TakeInput(inference::ModelInferRequest* request,
                                      const std::vector<TensorSignature>& columns) {
  const int inputs = request->inputs_size(), raw = request->raw_input_contents_size();
  const bool is_row = inputs == 1 && request->inputs(0).name() == kInput;
  if (!is_row && (columns.empty() || inputs != std::ssize(columns))) return OtherInputs(*request, columns);
  if (raw != 0 && raw != inputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("raw_input_contents has ", raw, " entries for ", inputs, inputs == 1 ? " input" : " inputs"));
  }
  if (!is_row) return TakeColumns(request, columns);
  return InputFromProto(request->inputs(0), raw == 1 ? request->mutable_raw_input_contents(0) : nullptr);
}

}  // namespace

bool InferenceCall::WantsErrors() const {
  if (outputs.empty()) return anytime;
  return std::ranges::any_of(outputs, [](const std::string& name) { return absl::EndsWith(name, kErrorSuffix); });
}

bool InferenceCall::WantsGradients() const { return std::ranges::any_of(outputs, IsGradient); }

bool InferenceCall::WantsMembers() const {
  return std::ranges::any_of(outputs, [](const std::string& name) { return absl::StartsWith(name, kMemberPrefix); });
}

absl::StatusOr<int64_t> VersionFromProto(const std::string& version) {
  if (version.empty()) return 0;
  int64_t number;
  const bool digits = std::ranges::all_of(version, [](char c) { return absl::ascii_isdigit(c); });  // no blanks
  if (digits && absl::SimpleAtoi(version, &number) && number >= 1) return number;
  const std::string why = absl::StrCat("model version '", version, "' is not a number from 1 on (empty: the newest)");
  return version == "0" ? absl::NotFoundError(why) : absl::InvalidArgumentError(why);
}

absl::StatusOr<InferenceCall> FromProto(inference::ModelInferRequest request,
                                        const std::vector<TensorSignature>& columns) {
  InferenceCall call;
  call.id = request.id();
  call.model = request.model_name();
  CHAINFLEET_ASSIGN_OR_RETURN(call.version, VersionFromProto(request.model_version()));
  CHAINFLEET_RETURN_IF_ERROR(TakeParameters(request, &call));
  for (const auto& output : request.outputs()) {
    for (const auto& [name, parameter] : output.parameters()) {
      if (name != "classification" || parameter.int64_param() < 1) {
        return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' of output '", output.name(),
                                                       "': outputs take 'classification', a number of classes"));
      }
      call.best_classes[output.name()] = parameter.int64_param();
    }
    call.outputs.push_back(output.name());
  }
  CHAINFLEET_ASSIGN_OR_RETURN(call.input, TakeInput(&request, columns));
  return call;
}

inference::ModelInferResponse ToProto(const Prediction& prediction, const InferenceCall& call,
                                      const std::vector<std::string>& class_names,
                                      const std::vector<int64_t>& input_shape) {
  inference::ModelInferResponse response;
  response.set_id(call.id);
  response.set_model_name(call.model);
  response.set_model_version(absl::StrCat(prediction.version));
  auto& parameters = *response.mutable_parameters();
  parameters["draws_used"].set_int64_param(prediction.draws_used);
  parameters["draws_in_version"].set_int64_param(prediction.draws_in_version);
  if (!prediction.members.empty()) {
    parameters["members"].set_string_param(NamesOfMembers(prediction));
    parameters["member_weights"].set_string_param(WeightsOfMembers(prediction));
  }
  std::vector<std::string> names = call.outputs;
  if (names.empty())
    names = UsualOutputs(prediction.targets, call.anytime, !call.quantiles.empty(), call.HasConformal());
  for (const std::string& name : names) {
    AddOutput(prediction, name, input_shape, &response);
    if (const auto best = call.best_classes.find(name); best != call.best_classes.end()) {
      KeepBestClasses(best->second, class_names, &response);
    }
  }
  return response;
}

}  // namespace chainfleet
