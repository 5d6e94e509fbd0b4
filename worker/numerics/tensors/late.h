// Values that a GPU may still be computing.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace chainfleet {

// One value for each row. The first read waits for the GPU; without a read nothing waits. A read may throw as LibTorch
// does. Not thread-safe.
template <typename T>
class Late {
 public:
  Late() = default;
  Late(std::vector<T> values) : values_(std::move(values)) {}  // NOLINT: values that are there are the usual case
  explicit Late(std::function<std::vector<T>()> make) : make_(std::move(make)) {}

  bool is_there() const { return !make_; }
  const std::vector<T>& get() const {
    if (make_) {
      values_ = make_();
      make_ = nullptr;
    }
    return values_;
  }
  operator const std::vector<T>&() const { return get(); }  // NOLINT
  const T& operator[](size_t row) const { return get()[row]; }

 private:
  mutable std::vector<T> values_;
  mutable std::function<std::vector<T>()> make_;
};

}  // namespace chainfleet
