// Checks the options of an evaluation against the job and its data set, and applies them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/domain/corruption.h"
#include "server/predict/evaluation/evaluation.h"
#include "server/predict/serving/draw_catalog.h"

namespace chainfleet {

// INVALID_ARGUMENT, naming every field that is out of bounds or needs classes while the job learns float32 targets.
// `kinds`: the kinds that are averaged.
absl::Status CheckOptions(const EvaluateQuery& query, const PinnedDraws& draws, const std::vector<DrawKind>& kinds);

// Each requested corruption at severities 1 to limits::kMaxCorruptionSeverity, in the order of CorruptionNames().
std::vector<Corruption> CorruptionsOf(const EvaluateQuery& query);

// Rows per block. Computed by RowsPerBlock for a fixed number of workers, so that sums over blocks have the same bits
// whichever workers serve. With single draws (`members`) blocks are smaller if they would hold too many bytes.
int64_t EvaluationRowsPerBlock(const PinnedDraws& draws, const std::vector<DrawKind>& kinds, bool members);

// The chains [first, first + count), clipped to the chains there are, each with only its newest draw.
PinnedDraws NewestDraws(const PinnedDraws& draws, size_t first, size_t count);

}  // namespace chainfleet
