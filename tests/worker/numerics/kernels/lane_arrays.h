// Arrays for the kernels, filled with reproducible numbers, and all instruction sets of this host.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/rng_key.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"

namespace chainfleet::testing {

// Zeros that start on 64 bytes.
class AlignedFloats {
 public:
  explicit AlignedFloats(int64_t size) : lines_(static_cast<size_t>((size + 15) / 16)), size_(size) {}
  // Uniform in (-1, 1).
  AlignedFloats(int64_t size, uint64_t seed) : AlignedFloats(size) {
    for (int64_t i = 0; i < size; ++i) {
      (*this)[i] = 2 * UniformFloat(static_cast<uint32_t>(Fold(RngKey{seed}, static_cast<uint64_t>(i)).value)) - 1;
    }
  }
  float* data() { return lines_.data()->value; }
  const float* data() const { return lines_.data()->value; }
  float& operator[](int64_t i) { return data()[i]; }
  float operator[](int64_t i) const { return data()[i]; }
  int64_t size() const { return size_; }
  std::vector<float> ToVector() const { return {data(), data() + size_}; }

 private:
  struct alignas(64) Line {
    float value[16] = {};
  };
  std::vector<Line> lines_;
  int64_t size_;
};

inline void UseTargets(int64_t mask) {
  hwy::SetSupportedTargetsForTest(mask);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// Runs `body` with the widest vectors of the host, then with narrower ones, all with fused multiply-add: the same bits.
inline void ForEachFusedTarget(const std::function<void()>& body) {
  const int64_t all = hwy::SupportedTargets();
  for (const int64_t mask : {all, static_cast<int64_t>(all & -HWY_AVX2)}) {
    SCOPED_TRACE(::testing::Message() << "instruction sets " << mask);
    UseTargets(mask);
    body();
  }
  UseTargets(0);
}

// Runs `body` with these targets, then with the compiler's own target, which may round each product.
inline void ForEachTarget(const std::function<void()>& body) {
  ForEachFusedTarget(body);
  SCOPED_TRACE("the baseline instruction set");
  UseTargets(HWY_STATIC_TARGET);
  body();
  UseTargets(0);
}

}  // namespace chainfleet::testing
