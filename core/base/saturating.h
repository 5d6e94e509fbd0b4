// Adds and multiplies sizes that users choose. A result beyond int64_t becomes the largest or smallest value, so that a
// comparison with a bound rejects it.
#pragma once

#include <cstdint>
#include <limits>

namespace chainfleet {

inline int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

inline int64_t SaturatingMultiply(int64_t a, int64_t b) {
  int64_t product;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) != (b < 0) ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

template <typename... More>
int64_t SaturatingProduct(int64_t first, More... more) {
  ((first = SaturatingMultiply(first, more)), ...);
  return first;
}

}  // namespace chainfleet
