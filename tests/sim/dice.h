// The random choices of one simulated run, all from its seed.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "absl/time/time.h"

namespace chainfleet {

// Not thread-safe: the choices depend on the order of the calls.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  uint64_t Next() { return random_(); }
  bool OneIn(uint64_t n) { return random_() % n == 0; }
  // Includes both ends.
  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  absl::Duration Between(absl::Duration least, absl::Duration most) {
    return least + (most - least) * (static_cast<double>(random_() >> 11) * 0x1p-53);
  }
  template <typename T>
  const T& Pick(const std::vector<T>& all) {
    return all[random_() % all.size()];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace chainfleet
