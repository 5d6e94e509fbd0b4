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

// Of the readable draws of each chain those that `query` asks for: of each chain the newest `members`, of these every
// `every`-th counted back from the newest, of these at most `max_draws` over all chains. The last takes the newest of
// each chain and is shared out evenly: no chain that has more gets two less than another, the first ones get the rest.
// Chains and segments without a chosen draw are not copied. Deterministic in both arguments; a number of `query` that
// is negative counts as 0, which is all, and one beyond what there is as that.
std::vector<ChainDraws> SelectDraws(const DrawQuery& query, const std::vector<const ChainDraws*>& readable);

// The averaged draws [first, first + count) of each chain, counted back from its newest.
std::vector<ChainDraws> DrawsOfWave(const std::vector<ChainDraws>& chains, int64_t first, int64_t count);

}  // namespace chainfleet
