#include "core/domain/microcanonical_rules.h"

#include "absl/strings/str_cat.h"

namespace chainfleet {

std::vector<FieldViolation> ValidateMicrocanonical(const JobSpec& spec) {
  std::vector<FieldViolation> violations;
  if (!spec.sampler.is_microcanonical()) return violations;
  const std::string name = spec.sampler.name();
  if (spec.schedule.scale == StepScale::kStepSize) {
    violations.push_back({"step_size", name + " tunes its step itself: give learning_rate, that of its descent"});
  } else if (!std::holds_alternative<ConstantSchedule>(spec.schedule.kind)) {
    violations.push_back({"learning_rate", name + " descends at a constant rate: give a number"});
  }
  if (spec.temperature == 0) {
    violations.push_back(
        {"temperature", absl::StrCat("must be above 0: ", name, " samples a density, T = 0 has none")});
  }
  const auto* potential = std::get_if<PotentialKind>(&spec.model.kind);
  const bool has_data = potential == nullptr || spec.model.has_data();
  const auto* smile = std::get_if<SmileSpec>(&spec.sampler.kind);
  if (smile == nullptr || smile->decoherence_length) return violations;
  if (smile->warm_up_steps == 0) {
    violations.push_back({"sampler.smile.decoherence_length", "give it: without a warm-up nothing tunes it"});
  }
  if (smile->noise_share > SmileSpec().noise_share && has_data && spec.minibatches == Minibatches::kReshuffle) {
    violations.push_back({"minibatches",
                          "give independent, or a smaller sampler.smile.noise_share: the noise of reshuffled batches "
                          "cancels in each epoch, and would sample another law"});
  }
  return violations;
}

std::vector<FieldViolation> ValidateMicrocanonicalSize(const SamplerSpec& sampler,
                                                       const std::vector<ParameterShape>& parameters) {
  if (!sampler.is_microcanonical() || NumParameters(parameters) >= 2) return {};
  return {{"sampler." + sampler.name(), "turns a velocity of fixed length: needs 2 parameters, the model has 1"}};
}

}  // namespace chainfleet
