#include "worker/numerics/kernels/lane_sequence.h"

#include <algorithm>
#include <cmath>

#include "worker/numerics/kernels/lanes.h"

namespace chainfleet {
namespace {

// scores[j][16] <- exp(scores[j] - largest) / sum over j.
void Softmax(int64_t length, float* scores) {
  float largest[kLanes], sum[kLanes] = {};
  std::copy_n(scores, kLanes, largest);
  for (int64_t i = kLanes; i < length * kLanes; ++i) {
    float& most = largest[i % kLanes];
    most = scores[i] > most ? scores[i] : most;
  }
  for (int64_t i = 0; i < length * kLanes; ++i) {
    scores[i] = std::exp(scores[i] - largest[i % kLanes]);
    sum[i % kLanes] += scores[i];
  }
  for (int64_t i = 0; i < length * kLanes; ++i) scores[i] /= sum[i % kLanes];
}

// scores[j][16] of one query [size][16] with every key of its head; keys lie `stride` vectors apart.
void Scores(int64_t length, int64_t size, int64_t stride, const float* query, const float* key, float* scores) {
  const float scale = 1 / std::sqrt(static_cast<float>(size));
  for (int64_t j = 0; j < length; ++j, key += stride * kLanes) {
    float sum[kLanes] = {};
    for (int64_t k = 0; k < size; ++k) {
      for (int64_t l = 0; l < kLanes; ++l) sum[l] += query[k * kLanes + l] * key[k * kLanes + l];
    }
    for (int64_t l = 0; l < kLanes; ++l) scores[j * kLanes + l] = sum[l] * scale;
  }
}

}  // namespace

void LanePixels(LaneSequence sequence, const float* x, float* y) {
  for (int64_t c = 0; c < sequence.width; ++c) {
    for (int64_t p = 0; p < sequence.length; ++p, x += kLanes) {
      std::copy_n(x, kLanes, y + (p * sequence.width + c) * kLanes);
    }
  }
}

bool LaneEmbed(LaneSequence sequence, int64_t count, const float* table, const float* x, float* y) {
  for (int64_t p = 0; p < sequence.length; ++p, x += kLanes, y += sequence.width * kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) {
      if (!(x[l] >= 0 && x[l] < static_cast<float>(count)) || x[l] != std::floor(x[l])) return false;
      const float* const row = table + static_cast<int64_t>(x[l]) * sequence.width;
      for (int64_t d = 0; d < sequence.width; ++d) y[d * kLanes + l] = row[d];
    }
  }
  return true;
}

void LaneCounted(int64_t length, int64_t padding, const float* x, float* counted) {
  for (int64_t i = 0; i < length * kLanes; ++i) counted[i] = x[i] == static_cast<float>(padding) ? 0.0f : 1.0f;
}

void LaneShift(LaneSequence sequence, const float* shift, float* x) {
  for (int64_t i = 0; i < sequence.length * sequence.width; ++i, x += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) x[l] += shift[i];
  }
}

void LaneAttention(LaneSequence sequence, int64_t heads, const float* in, const float* counted, float* scores,
                   float* y) {
  const int64_t length = sequence.length, width = sequence.width, size = width / heads, stride = 3 * width;
  std::fill_n(y, length * width * kLanes, 0.0f);
  for (int64_t h = 0; h < heads; ++h) {
    const float* const query = in + h * size * kLanes;
    const float* const key = query + width * kLanes;
    for (int64_t i = 0; i < length; ++i) {
      Scores(length, size, stride, query + i * stride * kLanes, key, scores);
      for (int64_t j = 0; counted != nullptr && j < length * kLanes; ++j) {
        scores[j] = counted[j] == 0 ? kHiddenScore : scores[j];
      }
      Softmax(length, scores);
      float* const out = y + (i * width + h * size) * kLanes;
      const float* value = key + width * kLanes;
      for (int64_t j = 0; j < length; ++j, value += stride * kLanes) {
        for (int64_t k = 0; k < size; ++k) {
          for (int64_t l = 0; l < kLanes; ++l) out[k * kLanes + l] += scores[j * kLanes + l] * value[k * kLanes + l];
        }
      }
    }
  }
}

void LanePositionMean(LaneSequence sequence, const float* counted, const float* x, float* y) {
  float positions[kLanes];
  std::fill_n(positions, kLanes, counted == nullptr ? static_cast<float>(sequence.length) : 0.0f);
  std::fill_n(y, sequence.width * kLanes, 0.0f);
  for (int64_t p = 0; p < sequence.length; ++p, x += sequence.width * kLanes) {
    for (int64_t i = 0; i < sequence.width * kLanes; ++i) {
      y[i] += counted == nullptr ? x[i] : x[i] * counted[p * kLanes + i % kLanes];
    }
    for (int64_t l = 0; counted != nullptr && l < kLanes; ++l) positions[l] += counted[p * kLanes + l];
  }
  for (int64_t i = 0; i < sequence.width * kLanes; ++i) y[i] /= std::max(positions[i % kLanes], 1.0f);
}

void LaneWindows(LaneSequence sequence, int64_t kernel, int64_t stride, int64_t padding, const float* x, float* y) {
  for (int64_t first = -padding; first + kernel <= sequence.length + padding; first += stride) {
    for (int64_t c = 0; c < sequence.width; ++c) {
      for (int64_t p = first; p < first + kernel; ++p, y += kLanes) {
        if (p < 0 || p >= sequence.length) {
          std::fill_n(y, kLanes, 0.0f);
        } else {
          std::copy_n(x + (p * sequence.width + c) * kLanes, kLanes, y);
        }
      }
    }
  }
}

}  // namespace chainfleet
