// Joins predictions of row blocks, and cuts predictions into rows.
#pragma once

#include <cstdint>

#include "core/domain/prediction.h"

namespace chainfleet {

// Appends the rows of `block` to `whole` (empty at first). draws_used becomes the smaller of the two. Monte Carlo
// errors stay known only if both have them; members stay only if both have them with the same number of draws.
void AppendRows(Prediction block, Prediction* whole);

// Returns rows [first, first + count). Drops quantiles, gradients and members unless they are all rows. REQUIRES: the
// rows exist.
Prediction RowsOf(const Prediction& whole, int64_t first, int64_t count);

}  // namespace chainfleet
