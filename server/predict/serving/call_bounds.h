// Bounds on results other than plain averages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "server/predict/serving/draw_catalog.h"

namespace chainfleet {

// INVALID_ARGUMENT: a level is outside (0, 1), there are more than limits::kMaxQuantiles, or the plan has classes.
absl::Status CheckQuantiles(const std::vector<double>& levels, const PredictPlan& plan);

// INVALID_ARGUMENT unless an answer of `num_rows` rows of `row_bytes` each fits into a message; the error has the
// largest number of rows that fits.
absl::Status CheckReplyBytes(int64_t num_rows, int64_t row_bytes);

// Returns the bytes of all scores and `num_quantiles` quantiles of a row, with the errors of both.
int64_t ScoreBytes(const Targets& targets, int64_t num_quantiles);

// Returns the bytes of the single draws' outputs for `num_rows` rows. INVALID_ARGUMENT, with the number of rows that
// would fit, if they exceed limits::kMaxMemberBytes or, with the scores, a message if the caller gets them (`replied`).
// `gradients`: each output has a gradient.
absl::StatusOr<int64_t> CheckMemberBytes(const PinnedDraws& draws, size_t num_kinds, int64_t num_rows, bool replied,
                                         bool gradients = false);

// INVALID_ARGUMENT, with the number of rows that would fit, unless the mean gradients of `num_rows` rows and their
// scores fit into a message.
absl::Status CheckGradientBytes(const PredictPlan& plan, int64_t num_rows);

// Returns the bytes of the sums that a call keeps by chain and kind, for `num_rows` rows. INVALID_ARGUMENT, with the
// number of rows that would fit, above limits::kMaxShardResultBytes. `num_parts`: sums per chain and kind.
absl::StatusOr<int64_t> CheckSumBytes(const PinnedDraws& draws, size_t num_kinds, int64_t num_rows,
                                      int64_t num_parts = 1, bool gradients = false);

}  // namespace chainfleet
