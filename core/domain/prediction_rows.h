// Predictions of many rows, made and taken apart by blocks of rows.
#pragma once

#include <cstdint>

#include "core/domain/prediction.h"

namespace chainfleet {

// Puts the rows of `block` after those of `whole` (empty at first). draws_used becomes the smaller of the two, the
// Monte Carlo errors unknown if they are so for one of them; of the members those stay that both have of as many draws.
void AppendRows(Prediction block, Prediction* whole);

// Rows [first, first + count) of `whole`, which has them, without quantiles and members unless those are all its rows.
Prediction RowsOf(const Prediction& whole, int64_t first, int64_t count);

}  // namespace chainfleet
