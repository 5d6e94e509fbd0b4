// The prior of a network's parameters, independent and centred at zero.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/domain/fields.h"
#include "core/domain/parameter_shape.h"

namespace chainfleet {

// Normal with variance 1 / precision; 0 is flat. `layers` sets a different precision for a layer (conv1, fc2).
struct GaussianPrior {
  static constexpr char kName[] = "gaussian";
  double precision = 0;
  std::map<std::string, double> layers = {};
  static void Fields(auto& self, auto&& visit) {
    visit("precision", self.precision, AtLeast(0));
    visit("layers", self.layers, AtLeast(0));
  }
  bool operator==(const GaussianPrior&) const = default;
};

// Density exp(-|x| / scale) / (2 scale).
struct LaplacePrior {
  static constexpr char kName[] = "laplace";
  double scale = 1;
  static void Fields(auto& self, auto&& visit) { visit("scale", self.scale, Above(0)); }
  bool operator==(const LaplacePrior&) const = default;
};

// Density proportional to (1 + (x / scale)^2 / nu)^(-(nu + 1) / 2).
struct StudentTPrior {
  static constexpr char kName[] = "student_t";
  double degrees_of_freedom = 3;
  double scale = 1;
  static void Fields(auto& self, auto&& visit) {
    visit("degrees_of_freedom", self.degrees_of_freedom, Above(0));
    visit("scale", self.scale, Above(0));
  }
  bool operator==(const StudentTPrior&) const = default;
};

using PriorKind = std::variant<GaussianPrior, LaplacePrior, StudentTPrior>;

struct PriorSpec {
  PriorKind kind;  // flat by default

  // Returns the precision that all parameters share; 0 if the prior is flat or has no single precision.
  double precision() const {
    const auto* gaussian = std::get_if<GaussianPrior>(&kind);
    return gaussian != nullptr && gaussian->layers.empty() ? gaussian->precision : 0;
  }
  bool is_flat() const { return *this == PriorSpec(); }
  bool operator==(const PriorSpec&) const = default;
};

// Returns violations with paths below "prior".
std::vector<FieldViolation> Validate(const PriorSpec& prior);

// Returns a violation at prior.gaussian.layers.NAME for each layer that `parameters` do not have.
std::vector<FieldViolation> ValidateForLayers(const PriorSpec& prior, const std::vector<ParameterShape>& parameters);

// Returns the layer of a parameter tensor: conv1 for conv1.weight; the whole name if it has no dot.
std::string LayerOf(const std::string& parameter);

}  // namespace chainfleet
