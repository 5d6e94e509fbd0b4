#include "core/domain/sampler_spec.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

void RequirePositive(const std::string& path, double value, std::vector<FieldViolation>* violations) {
  if (!std::isfinite(value) || value <= 0)
    violations->push_back({path, absl::StrCat("must be finite and above 0, is ", value)});
}

}  // namespace

std::vector<FieldViolation> Validate(const SamplerSpec& sampler) {
  std::vector<FieldViolation> violations;
  if (const auto* emcmc = std::get_if<EmcmcSpec>(&sampler.kind))
    RequirePositive("sampler.emcmc.eta", emcmc->eta, &violations);
  return violations;
}

std::vector<FieldViolation> Validate(const ScheduleSpec& schedule) {
  std::vector<FieldViolation> violations;
  const std::string root = schedule.scale == StepScale::kLearningRate ? "learning_rate" : "step_size";
  if (const auto* constant = std::get_if<ConstantSchedule>(&schedule.kind)) {
    RequirePositive(root + ".constant", constant->value, &violations);
  } else {
    const auto& cyclical = std::get<CyclicalSchedule>(schedule.kind);
    RequirePositive(root + ".cyclical.initial", cyclical.initial, &violations);
    if (!std::isfinite(cyclical.final) || cyclical.final < 0 || cyclical.final > cyclical.initial) {
      violations.push_back(
          {root + ".cyclical.final", absl::StrCat("must lie between 0 and initial, is ", cyclical.final)});
    }
    if (cyclical.cycles < 1 || cyclical.cycles > limits::kMaxCycles) {
      violations.push_back(
          {root + ".cyclical.cycles", absl::StrCat("must be 1 to ", limits::kMaxCycles, ", is ", cyclical.cycles)});
    }
  }
  return violations;
}

}  // namespace chainfleet
