// Which of the pinned draws a call averages, and what inputs they take.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "server/predict/draw_catalog.h"

namespace chainfleet {

// `asked` in kind order, each once; all of `draws` if empty. INVALID_ARGUMENT for a kind the job does not keep, or a
// job that samples no network and so predicts nothing.
absl::StatusOr<std::vector<DrawKind>> ChooseKinds(const PinnedDraws& draws, const std::vector<DrawKind>& asked);

// INVALID_ARGUMENT, with both shapes, unless `inputs` is [n, input_shape...] with n >= 1, the bytes of that shape, and
// finite.
absl::Status CheckInputs(const InputTensor& inputs, const PredictPlan& plan);

// INVALID_ARGUMENT, with both shapes, unless the rows of `dataset` fit and there is at least one.
absl::Status CheckDataset(const Dataset& dataset, const PredictPlan& plan);

// FAILED_PRECONDITION / TOO_FEW_DRAWS unless `readable` draws are at least `needed`, and at least one.
absl::Status CheckEnough(const PinnedDraws& draws, int64_t readable, int64_t needed);

// Steps, each with all its kinds.
int64_t NumDraws(const PinnedDraws& draws);

}  // namespace chainfleet
