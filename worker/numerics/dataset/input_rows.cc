#include "worker/numerics/dataset/input_rows.h"

#include <functional>
#include <numeric>

#include "core/base/check.h"
#include "worker/numerics/kernels/gather.h"

namespace chainfleet {

InputRows::InputRows(InputType type, const char* bytes, const std::vector<int64_t>& input_shape,
                     const Normalisation& normalisation)
    : type_(type),
      bytes_(bytes),
      row_size_(std::accumulate(input_shape.begin(), input_shape.end(), int64_t{1}, std::multiplies<>())),
      row_bytes_(row_size_ * (type == InputType::kUint8 ? 1 : sizeof(float))) {
  const double unit = type == InputType::kUint8 ? 1.0 / 255 : 1.0;
  const size_t channels = normalisation.mean.empty() ? 1 : normalisation.mean.size();
  CHAINFLEET_CHECK(row_size_ % channels == 0) << row_size_ << " values do not split into " << channels << " channels";
  scale_.assign(channels, static_cast<float>(unit));
  shift_.assign(channels, 0);
  for (size_t c = 0; c < normalisation.mean.size(); ++c) {
    // A channel that never varies carries nothing: it becomes zeros.
    const double inverse = normalisation.stddev[c] > 0 ? 1 / normalisation.stddev[c] : 1;
    scale_[c] = static_cast<float>(unit * inverse);
    shift_[c] = static_cast<float>(-normalisation.mean[c] * inverse);
  }
}

void InputRows::Prefetch(int64_t row) const {
  const char* first = bytes_ + row * row_bytes_;
  for (int64_t i = 0; i < row_bytes_; i += 64) __builtin_prefetch(first + i);
}

void InputRows::Read(int64_t row, float* out) const {
  const int64_t channels = static_cast<int64_t>(scale_.size());
  const InputScale scale{channels, row_size_ / channels, scale_.data(), shift_.data()};
  if (type_ == InputType::kUint8) {
    NormaliseRow(scale, reinterpret_cast<const uint8_t*>(bytes_ + row * row_bytes_), out);
  } else {
    NormaliseRow(scale, reinterpret_cast<const float*>(bytes_ + row * row_bytes_), out);
  }
}

}  // namespace chainfleet
