#include "core/wire/inference_wire.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/wire/inference_outputs.h"
#include "core/wire/inference_parameters.h"
#include "core/wire/inference_tensor.h"

namespace chainfleet {
namespace {

constexpr char kInput[] = "x";

absl::StatusOr<InputTensor> TakeInput(inference::ModelInferRequest* request) {
  if (request->inputs_size() != 1 || request->inputs(0).name() != kInput) {
    std::vector<std::string> names;
    for (const auto& input : request->inputs()) names.push_back(absl::StrCat("'", input.name(), "'"));
    return absl::InvalidArgumentError(
        absl::StrCat("the inputs are [", absl::StrJoin(names, ", "), "]: one input, 'x', is expected"));
  }
  const int raw = request->raw_input_contents_size();
  if (raw > 1) {
    return absl::InvalidArgumentError(absl::StrCat("raw_input_contents has ", raw, " entries for 1 input"));
  }
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

absl::StatusOr<InferenceCall> FromProto(inference::ModelInferRequest request) {
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
  CHAINFLEET_ASSIGN_OR_RETURN(call.input, TakeInput(&request));
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
  if (names.empty()) names = UsualOutputs(prediction.targets, call.anytime, !call.quantiles.empty());
  for (const std::string& name : names) {
    AddOutput(prediction, name, input_shape, &response);
    if (const auto best = call.best_classes.find(name); best != call.best_classes.end()) {
      KeepBestClasses(best->second, class_names, &response);
    }
  }
  return response;
}

}  // namespace chainfleet
