// How activations lie in memory on a CPU: 16 images side by side, [feature][16] or [channel][y][x][16] per group of 16.
//
// A weight is broadcast, the images fill the vector, so an image's numbers are computed alone and in one order: its
// bits depend neither on its place in the batch nor on the vector width. Missing images of the last group are zeros.
#pragma once

#include <cstdint>

namespace chainfleet {

inline constexpr int64_t kLanes = 16;       // images of a group: 64 bytes of float32
inline constexpr int64_t kSliceGroups = 4;  // groups that dense products take at once

inline constexpr int64_t NumGroups(int64_t images) { return (images + kLanes - 1) / kLanes; }

// Floats between rows of a [image][feature] copy: whole vectors, and an odd number of cache lines so that a column of
// rows does not fall into a few cache sets.
inline constexpr int64_t RowStride(int64_t features) { return ((features + 15) / 16 | 1) * 16; }

}  // namespace chainfleet
