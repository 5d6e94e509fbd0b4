// Changes of images that a network was not trained on, made by code from keys (after Hendrycks and Dietterich 2019).
#pragma once

#include <cstdint>
#include <string>

namespace chainfleet {

// Of rows of a stored data set, before they are normalised.
struct Corruption {
  std::string name;
  int32_t severity = 1;  // 1 to 5
  uint64_t seed = 0;     // row r of the data set is changed by the key Fold(seed, r), whatever else is asked for
  bool operator==(const Corruption&) const = default;
};

}  // namespace chainfleet
