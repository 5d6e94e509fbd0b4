// What a call may ask for beyond plain averages, and how much of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "server/predict/serving/draw_catalog.h"

namespace chainfleet {

// INVALID_ARGUMENT for a level outside (0, 1), more than limits::kMaxQuantiles of them, or any of a plan with classes.
absl::Status CheckQuantiles(const std::vector<double>& levels, const PredictPlan& plan);

// Whether an answer of `num_rows` rows, each of `row_bytes`, fits into a message. INVALID_ARGUMENT, with the rows that
// would do.
absl::Status CheckReplyBytes(int64_t num_rows, int64_t row_bytes);

// Bytes of all scores of a row and of so many quantiles, with the errors of both.
int64_t ScoreBytes(int64_t num_classes, int64_t num_quantiles);

// Whether what single draws say of `num_rows` rows stays within limits::kMaxMemberBytes, and with the scores within a
// message if the caller gets it (`replied`): then the bytes it takes. INVALID_ARGUMENT, with the rows that would do.
absl::StatusOr<int64_t> CheckMemberBytes(const PinnedDraws& draws, size_t num_kinds, int64_t num_rows, bool replied);

// Whether the sums of `num_rows` rows, which an anytime call keeps by chain and kind between its waves, stay within
// limits::kMaxShardResultBytes: then the bytes they take. INVALID_ARGUMENT, with the rows that would do. `num_parts`:
// sums of a chain and kind.
absl::StatusOr<int64_t> CheckWaveBytes(const PinnedDraws& draws, size_t num_kinds, int64_t num_rows,
                                       int64_t num_parts = 1);

}  // namespace chainfleet
