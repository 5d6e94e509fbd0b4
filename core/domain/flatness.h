// Curvature of the likelihood around a draw: the diagonal Fisher spectrum, and the loss along lines.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/base/status.h"

namespace chainfleet {

struct FlatnessPlan {
  int32_t fisher_points = 256;  // number of ranks of the diagonal that are reported, log-spaced
  int32_t line_points = 21;     // number of points on each line, evenly spaced from -1 to 1
  double radius = 1;            // length of the random direction, in units of |theta|
  uint64_t seed = 0;            // seed of the random direction
  static void Fields(auto& self, auto&& visit) {
    visit("fisher_points", self.fisher_points);
    visit("line_points", self.line_points);
    visit("radius", self.radius);
    visit("seed", self.seed);
  }
  bool operator==(const FlatnessPlan&) const = default;
};

// Returns violations of the bounds, at "flatness.fisher_points" and so on.
std::vector<FieldViolation> Validate(const FlatnessPlan& plan);

// The measurement at one chain's newest draw of theta, over n rows with labels or targets. Batch norm uses that draw's
// statistics, also on the lines. Values that are not finite are valid results.
struct Flatness {
  ChainId chain;
  double fisher_trace = 0;            // sum of the diagonal E[(g - E g)^2], g: gradient of a row's -log likelihood
  std::vector<int64_t> fisher_ranks;  // ranks of the reported values, rising; 1 is the largest value
  std::vector<double> fisher_values;  // values of the diagonal at these ranks, falling
  std::vector<double> line_positions;
  std::vector<double> random_line;  // mean NLL at theta + position x radius x |theta| x a random unit vector
  std::vector<double> anchor_line;  // mean NLL at theta + position x (theta_a - theta); empty without theta_a
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("fisher_trace", self.fisher_trace);
    visit("fisher_ranks", self.fisher_ranks);
    visit("fisher_values", self.fisher_values);
    visit("line_positions", self.line_positions);
    visit("random_line", self.random_line);
    visit("anchor_line", self.anchor_line);
  }
  bool operator==(const Flatness&) const = default;
};

}  // namespace chainfleet
