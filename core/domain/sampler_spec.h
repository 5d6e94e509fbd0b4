// How it is sampled: kernel, step-size schedule and their settings, as values. Formulas: docs/sampling.md.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

// theta -= alpha grad U + sqrt(2 alpha T) z.
struct SgldSpec {
  bool operator==(const SgldSpec&) const = default;
};

// Entropy-MCMC, joint form (Li & Zhang): theta and its anchor theta_a, coupled with variance eta, both updates from the
// old values.
struct EmcmcSpec {
  double eta = 4e-4;
  bool operator==(const EmcmcSpec&) const = default;
};

using SamplerKind = std::variant<SgldSpec, EmcmcSpec>;

struct SamplerSpec {
  SamplerKind kind;
  bool has_anchor() const { return std::holds_alternative<EmcmcSpec>(kind); }
  bool operator==(const SamplerSpec&) const = default;
};

struct ConstantSchedule {
  double value = 0;
  bool operator==(const ConstantSchedule&) const = default;
};

// final + (initial - final)/2 (cos(pi (t mod c)/c) + 1), c = floor(total steps / cycles), t in steps.
struct CyclicalSchedule {
  double initial = 0;
  double final = 0;
  int64_t cycles = 1;
  bool operator==(const CyclicalSchedule&) const = default;
};

// kLearningRate: h on the mean loss, alpha = h / N. kStepSize: alpha on the full-data potential.
enum class StepScale { kLearningRate, kStepSize };

struct ScheduleSpec {
  StepScale scale = StepScale::kLearningRate;
  std::variant<ConstantSchedule, CyclicalSchedule> kind;
  int64_t cycles() const {
    const auto* cyclical = std::get_if<CyclicalSchedule>(&kind);
    return cyclical ? cyclical->cycles : 1;
  }
  bool operator==(const ScheduleSpec&) const = default;
};

// Paths below "sampler".
std::vector<FieldViolation> Validate(const SamplerSpec& sampler);
// Paths below "learning_rate" or "step_size", by the scale.
std::vector<FieldViolation> Validate(const ScheduleSpec& schedule);

}  // namespace chainfleet
