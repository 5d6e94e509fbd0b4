// Memory layout of activations on a CPU: 16 images side by side, [feature][16] or [channel][y][x][16] per group of 16.
//
// A weight is broadcast and the images fill the vector, so the numbers of an image are computed separately and in one
// order. Its bits depend neither on its place in the minibatch nor on the vector width. Missing images of the last
// group are zeros.
#pragma once

#include <cstdint>

namespace chainfleet {

inline constexpr int64_t kLanes = 16;       // images of a group: 64 bytes of float32
inline constexpr int64_t kSliceGroups = 4;  // groups that a dense product processes at once

inline constexpr int64_t NumGroups(int64_t images) { return (images + kLanes - 1) / kLanes; }

// Floats between rows of an [image][feature] copy: whole vectors, and an odd number of cache lines, so that a column
// does not fall into few cache sets.
inline constexpr int64_t RowStride(int64_t features) { return ((features + 15) / 16 | 1) * 16; }

}  // namespace chainfleet
