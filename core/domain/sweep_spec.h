// Numbers that a job samples at several values: every combination is a point, and every point a posterior of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/fields.h"

namespace chainfleet {

// One list for each number; those that are empty stay as the rest of the job says. A schedule is swept by its initial
// value. Bounds are those of the settings that the values take the place of (ValidateSweep in sweep_points.h).
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

// One number that is swept.
struct SweepAxis {
  std::string name;  // as in the job file
  std::vector<double> values;
};

// The lists that are not empty, in the order of SweepSpec's fields.
std::vector<SweepAxis> AxesOf(const SweepSpec& sweep);

// Combinations; 1 without a sweep. If above limits::kMaxSweepPoints, one more than that.
int32_t NumPoints(const SweepSpec& sweep);

// Points count from 0, the last axis fastest. One value for each axis.
std::vector<double> ValuesAt(const SweepSpec& sweep, int32_t point);

// "temperature=0.0001,eta=0.001", each number with as many digits as tell it from every other; empty without a sweep.
std::string PointName(const SweepSpec& sweep, int32_t point);

// The point that `text` names: its number, or NAME=VALUE with commas for enough axes to select one point. Empty: the
// only point. INVALID_ARGUMENT / POINT_REQUIRED if it is empty and there are several, INVALID_ARGUMENT / NO_SUCH_POINT
// if none or more than one fits; both list the points there are.
absl::StatusOr<int32_t> FindPoint(const SweepSpec& sweep, const std::string& text);

}  // namespace chainfleet
