// Converts stored rows to the standardised float32 numbers that a network gets: (x / 255 - mean) / stddev per channel.
// Float rows are on the x / 255 scale already.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/domain/dataset.h"

namespace chainfleet {

// INVALID_ARGUMENT unless `normalisation` is empty or has finite pairs for a number of channels that divides an input.
absl::Status CheckNormalisation(const Normalisation& normalisation, const std::vector<int64_t>& input_shape);

// A view of rows [num_rows, input_shape...] that must outlive it. Thread-safe.
class InputRows {
 public:
  // An empty normalisation leaves the x / 255 scale. `normalisation` has passed CheckNormalisation.
  InputRows(InputType type, const char* bytes, const std::vector<int64_t>& input_shape,
            const Normalisation& normalisation);

  int64_t row_size() const { return row_size_; }
  // Input = stored value * scale + shift, per channel.
  const std::vector<float>& scale() const { return scale_; }
  const std::vector<float>& shift() const { return shift_; }
  // Prefetches the row's memory for a later Read: rows of a minibatch are scattered over the data set.
  void Prefetch(int64_t row) const;
  // Writes out[row_size].
  void Read(int64_t row, float* out) const;

 private:
  InputType type_;
  const char* bytes_;
  int64_t row_size_, row_bytes_;
  std::vector<float> scale_, shift_;  // per channel
};

}  // namespace chainfleet
