// Converts rows of a data set to the layouts of the first layer, float32, one thread.
#pragma once

#include <cstdint>

namespace chainfleet {

// x = value * scale + shift per channel of `channel_size` values.
struct InputScale {
  int64_t channels = 1, channel_size = 0;
  const float* scale = nullptr;  // [channels]
  const float* shift = nullptr;  // [channels]
};

// Writes out[channels * channel_size] from a stored row.
void NormaliseRow(const InputScale& input, const uint8_t* row, float* out);
void NormaliseRow(const InputScale& input, const float* row, float* out);

// Converts rows [16][stride] to out[features][16], and back. RowsToLanes fills rows from `images` on with zeros and
// does not read them.
void RowsToLanes(const float* rows, int64_t stride, int64_t images, int64_t features, float* out);
void LanesToRows(const float* lanes, int64_t features, float* rows, int64_t stride);

}  // namespace chainfleet
