// Layers of sequences over 16 examples in lanes (lanes.h), float32, one thread, forward only.
//
// Sequences are [position][value][16]. The arithmetic is that of lane_layers.h: plain IEEE float32 in one order per
// example.
#pragma once

#include <cstdint>

namespace chainfleet {

// The score of a key that does not count: its weight rounds to 0 beside any key that does, and it is no infinity, so a
// sequence in which none counts has no NaN.
inline constexpr float kHiddenScore = -1e9f;

// `length` vectors of `width` values.
struct LaneSequence {
  int64_t length = 0, width = 0;
};

// y[length][width][16]: pixels p of x[width][length][16], an image of `width` channels.
void LanePixels(LaneSequence sequence, const float* x, float* y);

// y[length][width][16]: rows of `table` [count][width] at the indices x[length][16]. False if one of them is no index.
bool LaneEmbed(LaneSequence sequence, int64_t count, const float* table, const float* x, float* y);

// counted[length][16]: 0 where x is `padding`, else 1.
void LaneCounted(int64_t length, int64_t padding, const float* x, float* counted);

// x <- x + shift[length][width].
void LaneShift(LaneSequence sequence, const float* shift, float* x);

// y[length][width][16], the weighted values of every head, from queries, keys and values in[length][3 width][16]
// (Vaswani et al., NeurIPS 2017). Keys of positions that are not `counted` (null: all are) weigh 0, unless none is.
// Overwrites scores[length][16].
void LaneAttention(LaneSequence sequence, int64_t heads, const float* in, const float* counted, float* scores,
                   float* y);

// y[width][16], the mean over the counted positions.
void LanePositionMean(LaneSequence sequence, const float* counted, const float* x, float* y);

// Windows of `kernel` positions, with zeros before and after: y[windows][width][kernel][16].
void LaneWindows(LaneSequence sequence, int64_t kernel, int64_t stride, int64_t padding, const float* x, float* y);

}  // namespace chainfleet
