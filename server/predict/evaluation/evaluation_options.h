// What an evaluation is asked for beyond its table, held against the job and its data set.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/domain/corruption.h"
#include "server/predict/evaluation/evaluation.h"
#include "server/predict/serving/draw_catalog.h"

namespace chainfleet {

// INVALID_ARGUMENT with every field that is out of its bounds, or that asks for classes of a job that learns numbers.
// `kinds`: those that are averaged.
absl::Status CheckOptions(const EvaluateQuery& query, const PinnedDraws& draws, const std::vector<DrawKind>& kinds);

// Each corruption that is asked for at severities 1 to limits::kMaxCorruptionSeverity, in the order of
// CorruptionNames().
std::vector<Corruption> CorruptionsOf(const EvaluateQuery& query);

// Rows of a block: as many as RowsPerBlock has for a fixed number of workers, so that sums over blocks have the same
// bits whoever serves; with single draws (`members`) fewer where those would be too many bytes.
int64_t EvaluationRowsPerBlock(const PinnedDraws& draws, const std::vector<DrawKind>& kinds, bool members);

// Chains [first, first + count), as far as there are so many, with the newest of their draws alone.
PinnedDraws NewestDraws(const PinnedDraws& draws, size_t first, size_t count);

}  // namespace chainfleet
