// The start of a job's chains, if the default does not apply: random for networks, zero for analytic potentials.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/fields.h"
#include "core/domain/parameter_shape.h"
#include "core/domain/stored_model.h"

namespace chainfleet {

enum class WeightsFormat { kSafetensors };
inline std::initializer_list<const char*> EnumNames(WeightsFormat) {
  static constexpr std::initializer_list<const char*> kNames = {"safetensors"};
  return kNames;
}

// theta_a always starts at theta, and momentum at 0. At most one of `theta`, `model` and `weights` is given.
struct InitSpec {
  // Values in layout order: one number for every coordinate, [D] for every chain, or [K, D] row by row, where chain i
  // starts at row i mod K. Empty: the model's default start.
  std::vector<double> theta;
  double perturb = 0;  // standard deviation of the normal noise that each chain adds to its start
  bool model = false;  // at the values that the file of a stored network holds
  // Names of stored files of parameters: chain i starts at file i mod K. In a submission they may be URIs, which the
  // names of the stored files replace.
  std::vector<std::string> weights;
  WeightsFormat format = WeightsFormat::kSafetensors;  // type of these files
  bool any() const { return !theta.empty() || perturb > 0 || model || !weights.empty(); }
  static void Fields(auto& self, auto&& visit) {
    visit("theta", self.theta);
    visit("perturb", self.perturb, AtLeast(0));
    visit("model", self.model, IfAny());
    visit("weights", self.weights, IfAny());
    visit("format", self.format, IfAny());
  }
  bool operator==(const InitSpec&) const = default;
};

// Returns K, the number of points at which the chains of a model with `num_parameters` parameters start in turn; 0
// without `weights` and rows of `theta`.
int64_t NumStartPoints(const InitSpec& init, int64_t num_parameters);

// Returns a violation at init.theta unless `theta` holds whole points of a model with `num_parameters` parameters.
std::vector<FieldViolation> ValidateForSize(const InitSpec& init, int64_t num_parameters);

// Returns a violation for each of `weights`, the files of init.weights, at which a chain of a network with `parameters`
// cannot start.
std::vector<FieldViolation> ValidateWeights(const std::vector<StoredModel>& weights,
                                            const std::vector<ParameterShape>& parameters);

}  // namespace chainfleet
