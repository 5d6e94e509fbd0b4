#include "core/wire/inference_parameters.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

using Parameter = inference::InferParameter;

constexpr char kKnown[] =
    "kinds, chains, members, every, max_draws, min_draws, anytime, quantiles, include_failed, point, weights, "
    "pseudo_bma, conformal, level, timeout and priority";

template <typename... Parts>
absl::Status Invalid(const std::string& name, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' ", parts...));
}

absl::StatusOr<int64_t> CountOf(const std::string& name, const Parameter& parameter) {
  if (parameter.has_int64_param() && parameter.int64_param() >= 0) return parameter.int64_param();
  if (parameter.has_uint64_param() && parameter.uint64_param() <= uint64_t{std::numeric_limits<int64_t>::max()}) {
    return static_cast<int64_t>(parameter.uint64_param());
  }
  return Invalid(name, "must be an integer from 0 on");
}

absl::Status TakeKinds(const std::string& name, const std::string& text, InferenceCall* call) {
  for (const auto& kind : absl::StrSplit(text, ',')) {
    if (kind != "theta" && kind != "theta_a") {
      return Invalid(name, "is '", text, "': theta, theta_a or theta,theta_a is expected");
    }
    call->kinds.push_back(kind == "theta" ? DrawKind::kTheta : DrawKind::kThetaA);
  }
  return absl::OkStatus();
}

absl::Status TakeChains(const std::string& name, const std::string& text, InferenceCall* call) {
  for (const auto& index : absl::StrSplit(text, ',')) {
    int32_t chain;
    if (!absl::SimpleAtoi(index, &chain) || chain < 0) {
      return Invalid(name, "is '", text, "': indices of chains with commas, such as '0,2', are expected");
    }
    if (call->chains.size() == limits::kMaxChainsPerJob) return Invalid(name, "names more chains than a job has");
    call->chains.push_back(chain);
  }
  return absl::OkStatus();
}

absl::Status TakeQuantiles(const std::string& name, const std::string& text, InferenceCall* call) {
  for (const auto& level : absl::StrSplit(text, ',')) {
    double value;
    if (!absl::SimpleAtod(level, &value) || !(value > 0 && value < 1)) {
      return Invalid(name, "is '", text,
                     "': levels above 0 and below 1 with commas, such as '0.05,0.95', are expected");
    }
    call->quantiles.push_back(value);
  }
  return absl::OkStatus();
}

absl::Status TakeTimeout(const std::string&, int64_t microseconds, InferenceCall* call) {
  if (microseconds > 0) call->timeout = absl::Microseconds(microseconds);
  return absl::OkStatus();
}

absl::Status TakePriority(const std::string& name, int64_t priority, InferenceCall* call) {
  if (priority > 3) return Invalid(name, "must be 1 (high) to 3 (low), or 0");
  if (priority > 0) call->priority = static_cast<int>(priority) - 1;
  return absl::OkStatus();
}

template <std::string InferenceCall::*kField>
absl::Status TakeText(const std::string&, const std::string& text, InferenceCall* call) {
  call->*kField = text;
  return absl::OkStatus();
}

template <int64_t InferenceCall::*kField>
absl::Status TakeCount(const std::string&, int64_t count, InferenceCall* call) {
  call->*kField = count;
  return absl::OkStatus();
}

struct CountParameter {
  const char* name;
  absl::Status (*take)(const std::string& name, int64_t count, InferenceCall* call);
};
constexpr CountParameter kCounts[] = {{"members", TakeCount<&InferenceCall::members>},
                                      {"every", TakeCount<&InferenceCall::every>},
                                      {"max_draws", TakeCount<&InferenceCall::max_draws>},
                                      {"min_draws", TakeCount<&InferenceCall::min_draws>},
                                      {"timeout", TakeTimeout},
                                      {"priority", TakePriority}};

struct TextParameter {
  const char* name;
  absl::Status (*take)(const std::string& name, const std::string& text, InferenceCall* call);
};
constexpr TextParameter kTexts[] = {{"kinds", TakeKinds},
                                    {"chains", TakeChains},
                                    {"quantiles", TakeQuantiles},
                                    {"point", TakeText<&InferenceCall::point>},
                                    {"weights", TakeText<&InferenceCall::weights>},
                                    {"conformal", TakeText<&InferenceCall::conformal>}};

struct SwitchParameter {
  const char* name;
  bool InferenceCall::*field;
};
constexpr SwitchParameter kSwitches[] = {{"include_failed", &InferenceCall::include_failed},
                                         {"anytime", &InferenceCall::anytime},
                                         {"pseudo_bma", &InferenceCall::pseudo_bma},
                                         {"triton_enable_empty_final_response", &InferenceCall::final_response}};

absl::Status TakeParameter(const std::string& name, const Parameter& parameter, InferenceCall* call) {
  for (const CountParameter& known : kCounts) {
    if (name != known.name) continue;
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t count, CountOf(name, parameter));
    return known.take(name, count, call);
  }
  for (const TextParameter& known : kTexts) {
    if (name != known.name) continue;
    if (!parameter.has_string_param()) return Invalid(name, "must be a string");
    return known.take(name, parameter.string_param(), call);
  }
  for (const SwitchParameter& known : kSwitches) {
    if (name != known.name) continue;
    if (!parameter.has_bool_param()) return Invalid(name, "must be a bool");
    call->*known.field = parameter.bool_param();
    return absl::OkStatus();
  }
  if (name == "level") {
    call->level = parameter.double_param();  // 0 for another type
    return call->level > 0 ? absl::OkStatus() : Invalid(name, "must be a double above 0, such as 0.9");
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown parameter '", name, "': ", kKnown, " are those there are"));
}

}  // namespace

absl::Status TakeParameters(const inference::ModelInferRequest& request, InferenceCall* call) {
  for (const auto& [name, parameter] : request.parameters()) {
    CHAINFLEET_RETURN_IF_ERROR(TakeParameter(name, parameter, call));
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
