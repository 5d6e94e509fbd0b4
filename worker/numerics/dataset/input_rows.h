// Stored rows as the standardised float32 numbers a network sees: (x / 255 - mean) / stddev per channel; float rows are
// on the x / 255 scale already.
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
  // The number is stored * scale + shift, per channel.
  const std::vector<float>& scale() const { return scale_; }
  const std::vector<float>& shift() const { return shift_; }
  // Asks for the row's memory ahead of Read: rows of a batch lie anywhere in the data set.
  void Prefetch(int64_t row) const;
  // out[row_size].
  void Read(int64_t row, float* out) const;

 private:
  InputType type_;
  const char* bytes_;
  int64_t row_size_, row_bytes_;
  std::vector<float> scale_, shift_;  // per channel
};

}  // namespace chainfleet
