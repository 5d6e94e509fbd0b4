// The step size over a run, as values. t counts steps from 0; "the run" means all of a chain's training steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "core/base/limits.h"
#include "core/base/status.h"
#include "core/domain/fields.h"

namespace chainfleet {

struct ConstantSchedule {
  static constexpr char kName[] = "constant";
  double value = 0;
  double initial_value() const { return value; }
  double largest_value() const { return value; }
  static void Fields(auto& self, auto&& visit) { visit("value", self.value, AtLeast(0)); }
  bool operator==(const ConstantSchedule&) const = default;
};

// initial + (final - initial) t / total.
struct LinearSchedule {
  static constexpr char kName[] = "linear";
  double initial = 0, final = 0;
  double initial_value() const { return initial; }
  double largest_value() const { return std::max(initial, final); }
  static void Fields(auto& self, auto&& visit) {
    visit("initial", self.initial, Above(0));
    visit("final", self.final, AtLeast(0));
  }
  bool operator==(const LinearSchedule&) const = default;
};

// initial (final / initial)^(t / total).
struct ExponentialSchedule {
  static constexpr char kName[] = "exponential";
  double initial = 0, final = 0;
  double initial_value() const { return initial; }
  double largest_value() const { return std::max(initial, final); }
  static void Fields(auto& self, auto&& visit) {
    visit("initial", self.initial, Above(0));
    visit("final", self.final, Above(0));
  }
  bool operator==(const ExponentialSchedule&) const = default;
};

// `initial` up to the share `at` of the run, then initial * factor.
struct StepSchedule {
  static constexpr char kName[] = "step";
  double initial = 0;
  double factor = 0.1;
  double at = 0.5;
  double initial_value() const { return initial; }
  double largest_value() const { return initial * std::max(1.0, factor); }
  static void Fields(auto& self, auto&& visit) {
    visit("initial", self.initial, Above(0));
    visit("factor", self.factor, Above(0));
    visit("at", self.at, Inside(0, 1));
  }
  bool operator==(const StepSchedule&) const = default;
};

// final + (initial - final)/2 (cos(pi (t mod c)/c) + 1), c = total steps / cycles, which must divide (Zhang et al.,
// "Cyclical stochastic gradient MCMC for Bayesian deep learning", ICLR 2020).
struct CyclicalSchedule {
  static constexpr char kName[] = "cyclical";
  double initial = 0, final = 0;
  int64_t cycles = 1;
  double initial_value() const { return initial; }
  double largest_value() const { return std::max(initial, final); }
  static void Fields(auto& self, auto&& visit) {
    visit("initial", self.initial, Above(0));
    visit("final", self.final, AtLeast(0));
    visit("cycles", self.cycles, Between(1, limits::kMaxCycles));
  }
  bool operator==(const CyclicalSchedule&) const = default;
};

// SWAG's schedule. s is the share of the way to data epoch `start_epoch`: initial until s = 0.5, linear to final at s =
// 0.9, then final (Maddox et al., "A simple baseline for Bayesian uncertainty in deep learning", NeurIPS 2019).
struct SwagSchedule {
  static constexpr char kName[] = "swag";
  double initial = 0, final = 0;
  int64_t start_epoch = 1;
  double initial_value() const { return initial; }
  double largest_value() const { return std::max(initial, final); }
  static void Fields(auto& self, auto&& visit) {
    visit("initial", self.initial, Above(0));
    visit("final", self.final, Above(0));
    visit("start_epoch", self.start_epoch, Between(1, limits::kMaxEpochs));
  }
  bool operator==(const SwagSchedule&) const = default;
};

// initial (1 + t / offset)^-power: the decreasing steps a (b + t)^-gamma of Welling & Teh, "Bayesian learning via
// stochastic gradient Langevin dynamics" (ICML 2011), with a = initial offset^power, b = `offset` in steps, gamma =
// `power`. Their conditions for convergence hold for a power in (0.5, 1].
struct PolynomialSchedule {
  static constexpr char kName[] = "polynomial";
  double initial = 0, offset = 1, power = 0.55;
  double initial_value() const { return initial; }
  double largest_value() const { return initial; }
  static void Fields(auto& self, auto&& visit) {
    visit("initial", self.initial, Above(0));
    visit("offset", self.offset, Above(0));
    visit("power", self.power, Above(0));
  }
  bool operator==(const PolynomialSchedule&) const = default;
};

using ScheduleKind = std::variant<ConstantSchedule, LinearSchedule, ExponentialSchedule, StepSchedule, CyclicalSchedule,
                                  SwagSchedule, PolynomialSchedule>;

// kLearningRate: h on the mean loss, alpha = h / N. kStepSize: alpha on the full-data potential.
enum class StepScale { kLearningRate, kStepSize };

struct ScheduleSpec {
  StepScale scale = StepScale::kLearningRate;
  ScheduleKind kind;

  int64_t cycles() const {
    const auto* cyclical = std::get_if<CyclicalSchedule>(&kind);
    return cyclical ? cyclical->cycles : 1;
  }
  double initial_value() const {
    return std::visit([](const auto& schedule) { return schedule.initial_value(); }, kind);
  }
  double largest_value() const {
    return std::visit([](const auto& schedule) { return schedule.largest_value(); }, kind);
  }
  bool operator==(const ScheduleSpec&) const = default;
};

// Returns violations with paths below "learning_rate" or "step_size", depending on the scale.
std::vector<FieldViolation> Validate(const ScheduleSpec& schedule);

}  // namespace chainfleet
