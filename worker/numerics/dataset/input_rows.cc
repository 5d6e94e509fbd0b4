#include "worker/numerics/dataset/input_rows.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/domain/parameter_shape.h"
#include "worker/numerics/kernels/gather.h"

namespace chainfleet {

absl::Status CheckNormalisation(const Normalisation& normalisation, const std::vector<int64_t>& input_shape) {
  const size_t channels = normalisation.mean.size();
  bool fits = normalisation.stddev.size() == channels && (channels == 0 || NumValues(input_shape) % channels == 0);
  for (size_t c = 0; fits && c < channels; ++c) {
    fits =
        std::isfinite(normalisation.mean[c]) && std::isfinite(normalisation.stddev[c]) && normalisation.stddev[c] >= 0;
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("normalisation of ", channels, " means and ",
                                                 normalisation.stddev.size(), " deviations does not fit inputs [",
                                                 absl::StrJoin(input_shape, ", "), "] or is not finite"));
}

InputRows::InputRows(InputType type, const char* bytes, const std::vector<int64_t>& input_shape,
                     const Normalisation& normalisation)
    : type_(type), bytes_(bytes), row_size_(NumValues(input_shape)), row_bytes_(row_size_ * ItemBytes(type)) {
  const double unit = type == InputType::kUint8 ? 1.0 / 255 : 1.0;
  const size_t channels = normalisation.mean.empty() ? 1 : normalisation.mean.size();
  CHAINFLEET_CHECK(row_size_ % channels == 0) << row_size_ << " values do not split into " << channels << " channels";
  scale_.assign(channels, static_cast<float>(unit));
  shift_.assign(channels, 0);
  for (size_t c = 0; c < normalisation.mean.size(); ++c) {
    // A constant channel carries no information: it becomes zeros.
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
