// Which of the pinned draws a call averages, and what inputs they take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "server/predict/serving/draw_catalog.h"

namespace chainfleet {

// `asked` in kind order, each once; all of `draws` if empty. INVALID_ARGUMENT for a kind the job does not keep, or a
// job that samples no network and so predicts nothing.
absl::StatusOr<std::vector<DrawKind>> ChooseKinds(const PinnedDraws& draws, const std::vector<DrawKind>& asked);

// INVALID_ARGUMENT, with both shapes, unless `inputs` says that it is [n, input_shape...] with n >= 1.
absl::Status CheckShape(const InputTensor& inputs, const PredictPlan& plan);

// INVALID_ARGUMENT unless `inputs` has the bytes of the shape that it names, all finite.
absl::Status CheckRows(const InputTensor& inputs);

// Both.
absl::Status CheckInputs(const InputTensor& inputs, const PredictPlan& plan);

// INVALID_ARGUMENT unless `inputs` are on the scale that the job learns from. uint8 counts as x / 255: from a uint8
// data set it takes that, and float32 that lie about 0 to 1; from a float32 data set float32 alone, on that data set's
// scale.
absl::Status CheckScale(const InputTensor& inputs, InputType learned, const std::string& job);

// INVALID_ARGUMENT, with what both have, unless the rows of `dataset` fit in shape, targets and scale, by its means and
// deviations, and there is at least one.
absl::Status CheckDataset(const Dataset& dataset, const PinnedDraws& draws);

// FAILED_PRECONDITION / TOO_FEW_DRAWS unless `readable` draws are at least `needed`, and at least one.
absl::Status CheckEnough(const PinnedDraws& draws, int64_t readable, int64_t needed);

// Steps that are averaged, each with all its kinds.
int64_t NumDraws(const ChainDraws& chain);
int64_t NumDraws(const std::vector<ChainDraws>& chains);
int64_t NumDraws(const PinnedDraws& draws);

// Selects the draws that `query` asks for among the readable ones: first the newest `members` of each chain, then every
// `every`-th of these, counted back from the newest, then at most `max_draws` over all chains. The last step keeps the
// newest draws and divides `max_draws` evenly: shares differ by at most one unless a chain has fewer draws, and the
// first chains get the remainder. Does not copy chains and segments without a selected draw. Deterministic in both
// arguments. A negative number in `query` counts as 0, which selects all; a number above the draws there are also does.
std::vector<ChainDraws> SelectDraws(const DrawQuery& query, const std::vector<const ChainDraws*>& readable);

// The averaged draws [first, first + count) of each chain, counted back from its newest.
std::vector<ChainDraws> DrawsOfWave(const std::vector<ChainDraws>& chains, int64_t first, int64_t count);

}  // namespace chainfleet
