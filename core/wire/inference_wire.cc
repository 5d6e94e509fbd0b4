#include "core/wire/inference_wire.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/wire/inference_tensor.h"

namespace chainfleet {
namespace {

constexpr char kInput[] = "x";
constexpr char kErrorSuffix[] = "_error";

absl::StatusOr<std::vector<DrawKind>> KindsOf(const std::string& names) {
  std::vector<DrawKind> kinds;
  for (const auto& name : absl::StrSplit(names, ',')) {
    if (name == "theta") {
      kinds.push_back(DrawKind::kTheta);
    } else if (name == "theta_a") {
      kinds.push_back(DrawKind::kThetaA);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter 'kinds' is '", names, "': theta, theta_a or theta,theta_a is expected"));
    }
  }
  return kinds;
}

absl::StatusOr<int64_t> CountOf(const std::string& name, const inference::InferParameter& parameter) {
  if (parameter.has_int64_param() && parameter.int64_param() >= 0) return parameter.int64_param();
  if (parameter.has_uint64_param() && parameter.uint64_param() <= uint64_t{std::numeric_limits<int64_t>::max()}) {
    return static_cast<int64_t>(parameter.uint64_param());
  }
  return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' must be an integer from 0 on"));
}

absl::StatusOr<std::string> TextOf(const std::string& name, const inference::InferParameter& parameter) {
  if (parameter.has_string_param()) return parameter.string_param();
  return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' must be a string"));
}

absl::Status TakeParameter(const std::string& name, const inference::InferParameter& parameter, InferenceCall* call) {
  if (name == "kinds") {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string names, TextOf(name, parameter));
    CHAINFLEET_ASSIGN_OR_RETURN(call->kinds, KindsOf(names));
  } else if (name == "point") {
    CHAINFLEET_ASSIGN_OR_RETURN(call->point, TextOf(name, parameter));
  } else if (name == "members") {
    CHAINFLEET_ASSIGN_OR_RETURN(call->members, CountOf(name, parameter));
  } else if (name == "min_draws") {
    CHAINFLEET_ASSIGN_OR_RETURN(call->min_draws, CountOf(name, parameter));
  } else if (name == "timeout") {
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t microseconds, CountOf(name, parameter));
    if (microseconds > 0) call->timeout = absl::Microseconds(microseconds);
  } else if (name == "priority") {
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t priority, CountOf(name, parameter));
    if (priority > 3) return absl::InvalidArgumentError("parameter 'priority' must be 1 (high) to 3 (low), or 0");
    if (priority > 0) call->priority = static_cast<int>(priority) - 1;
  } else if (name == "include_failed") {
    if (!parameter.has_bool_param()) return absl::InvalidArgumentError("parameter 'include_failed' must be a bool");
    call->include_failed = parameter.bool_param();
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown parameter '", name,
                     "': kinds, members, min_draws, include_failed, point, timeout and priority are those there are"));
  }
  return absl::OkStatus();
}

absl::StatusOr<InputTensor> TakeInput(const inference::ModelInferRequest& request) {
  if (request.inputs_size() != 1 || request.inputs(0).name() != kInput) {
    std::vector<std::string> names;
    for (const auto& input : request.inputs()) names.push_back(absl::StrCat("'", input.name(), "'"));
    return absl::InvalidArgumentError(
        absl::StrCat("the inputs are [", absl::StrJoin(names, ", "), "]: one input, 'x', is expected"));
  }
  const int raw = request.raw_input_contents_size();
  if (raw > 1) {
    return absl::InvalidArgumentError(absl::StrCat("raw_input_contents has ", raw, " entries for 1 input"));
  }
  return InputFromProto(request.inputs(0), raw == 1 ? &request.raw_input_contents(0) : nullptr);
}

// The score that an output is, or is the error of.
std::string ScoreName(const std::string& output) { return std::string(absl::StripSuffix(output, kErrorSuffix)); }

// The protocol lets contents differ from the request's order; ours are in it.
void AddOutput(const Prediction& prediction, const std::string& name, inference::ModelInferResponse* response) {
  const auto fields = ScoresOfTarget(prediction.num_classes);
  const auto field =
      std::ranges::find(fields, ScoreName(name), [](const ScoreField& f) { return std::string(f.name); });
  const bool of_error = absl::EndsWith(name, kErrorSuffix);
  std::vector<double> unknown;
  const std::vector<double>* values = &((of_error ? prediction.errors : prediction.scores).*field->values);
  if (of_error && values->empty()) {
    unknown.assign((prediction.scores.*field->values).size(), std::numeric_limits<double>::quiet_NaN());
    values = &unknown;
  }
  auto* output = response->add_outputs();
  output->set_name(name);
  output->set_datatype("FP64");
  output->add_shape(prediction.num_rows);
  if (field->per_class) output->add_shape(prediction.num_classes);
  response->add_raw_output_contents(values->data(), values->size() * sizeof(double));
}

}  // namespace

bool InferenceCall::WantsErrors() const {
  return std::ranges::any_of(outputs, [](const std::string& name) { return absl::EndsWith(name, kErrorSuffix); });
}

absl::StatusOr<int64_t> VersionFromProto(const std::string& version) {
  if (version.empty()) return 0;
  int64_t number;
  if (absl::SimpleAtoi(version, &number) && number >= 1) return number;
  return absl::InvalidArgumentError(
      absl::StrCat("model version '", version, "' is not a number from 1 on (empty: the newest)"));
}

absl::StatusOr<InferenceCall> FromProto(const inference::ModelInferRequest& request) {
  InferenceCall call;
  call.model = request.model_name();
  CHAINFLEET_ASSIGN_OR_RETURN(call.version, VersionFromProto(request.model_version()));
  for (const auto& [name, parameter] : request.parameters()) {
    CHAINFLEET_RETURN_IF_ERROR(TakeParameter(name, parameter, &call));
  }
  for (const auto& output : request.outputs()) {
    if (!output.parameters().empty()) {
      return absl::InvalidArgumentError(absl::StrCat("output '", output.name(), "' has parameters: outputs take none"));
    }
    call.outputs.push_back(output.name());
  }
  CHAINFLEET_ASSIGN_OR_RETURN(call.input, TakeInput(request));
  return call;
}

std::vector<InferenceTensor> InferenceOutputs(int64_t num_classes) {
  std::vector<InferenceTensor> outputs;
  for (const char* suffix : {"", kErrorSuffix}) {
    for (const ScoreField& field : ScoresOfTarget(num_classes)) {
      const auto row_shape = field.per_class ? std::vector<int64_t>{num_classes} : std::vector<int64_t>{};
      outputs.push_back({absl::StrCat(field.name, suffix), "FP64", row_shape});
    }
  }
  return outputs;
}

absl::Status CheckOutputs(const std::vector<std::string>& outputs, int64_t num_classes) {
  std::vector<std::string> names;
  for (const InferenceTensor& output : InferenceOutputs(num_classes)) names.push_back(output.name);
  for (const std::string& output : outputs) {
    if (std::ranges::find(names, output) == names.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown output '", output, "': this model has ", absl::StrJoin(names, ", ")));
    }
  }
  return absl::OkStatus();
}

inference::ModelInferResponse ToProto(const Prediction& prediction, const InferenceCall& call) {
  inference::ModelInferResponse response;
  response.set_model_name(call.model);
  response.set_model_version(absl::StrCat(prediction.version));
  (*response.mutable_parameters())["draws_used"].set_int64_param(prediction.draws_used);
  (*response.mutable_parameters())["draws_in_version"].set_int64_param(prediction.draws_in_version);
  std::vector<std::string> names = call.outputs;
  if (names.empty()) {
    for (const ScoreField& field : ScoresOfTarget(prediction.num_classes)) names.push_back(field.name);
  }
  for (const std::string& name : names) AddOutput(prediction, name, &response);
  return response;
}

}  // namespace chainfleet
