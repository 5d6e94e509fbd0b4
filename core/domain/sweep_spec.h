// Numbers that a job samples at several values: every combination is a point with a posterior of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/fields.h"

namespace chainfleet {

// One list for each number; an empty list leaves the job's own value. A sweep of a schedule replaces its initial value.
// The bounds are those of the replaced settings (ValidateSweep in sweep_points.h).
struct SweepSpec {
  static constexpr char kName[] = "sweep";
  std::vector<double> step_size, learning_rate, temperature, prior_precision, eta, friction, rho;
  static void Fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size);
    visit("learning_rate", self.learning_rate);
    visit("temperature", self.temperature);
    visit("prior_precision", self.prior_precision);
    visit("eta", self.eta);
    visit("friction", self.friction);
    visit("rho", self.rho);
  }
  bool any() const { return *this != SweepSpec(); }
  bool operator==(const SweepSpec&) const = default;
};

// One swept number.
struct SweepAxis {
  std::string name;  // the name in the job file
  std::vector<double> values;
};

// Returns the lists that are not empty, in the order of SweepSpec's fields.
std::vector<SweepAxis> AxesOf(const SweepSpec& sweep);

// Returns the number of combinations: 1 without a sweep, at most limits::kMaxSweepPoints + 1.
int32_t NumPoints(const SweepSpec& sweep);

// Returns one value for each axis. Points count from 0; the last axis changes fastest.
std::vector<double> ValuesAt(const SweepSpec& sweep, int32_t point);

// Returns "temperature=0.0001,eta=0.001" with enough digits to distinguish all numbers; empty without a sweep.
std::string PointName(const SweepSpec& sweep, int32_t point);

// Returns the point that `text` names: its number, or NAME=VALUE with commas for enough axes to select one point. An
// empty text selects the only point. INVALID_ARGUMENT / POINT_REQUIRED if the text is empty and there are several
// points, INVALID_ARGUMENT / NO_SUCH_POINT unless exactly one point fits; both list the points.
absl::StatusOr<int32_t> FindPoint(const SweepSpec& sweep, const std::string& text);

}  // namespace chainfleet
