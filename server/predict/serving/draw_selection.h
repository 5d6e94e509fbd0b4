// Selects the draws that a call averages, and checks the inputs of the call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "server/predict/serving/draw_catalog.h"

namespace chainfleet {

// Returns `asked` in kind order without duplicates; all kinds of `draws` if empty. INVALID_ARGUMENT for a kind that the
// job does not keep, or for a job that samples no network and so makes no predictions.
absl::StatusOr<std::vector<DrawKind>> ChooseKinds(const PinnedDraws& draws, const std::vector<DrawKind>& asked);

// INVALID_ARGUMENT with both shapes unless `inputs` has the shape [n, input_shape...] with n >= 1.
absl::Status CheckShape(const InputTensor& inputs, const PredictPlan& plan);

// INVALID_ARGUMENT unless `inputs` has the bytes of its shape, and all values are finite.
absl::Status CheckRows(const InputTensor& inputs);

// Checks shape and rows.
absl::Status CheckInputs(const InputTensor& inputs, const PredictPlan& plan);

// INVALID_ARGUMENT unless `inputs` are on the scale of the job's training inputs; uint8 is read as x / 255. A job with
// uint8 inputs accepts uint8, and float32 from about 0 to 1. A job with float32 inputs accepts only float32, on the
// scale of its data set.
absl::Status CheckScale(const InputTensor& inputs, InputType learned, const std::string& job);

// INVALID_ARGUMENT with both values unless `dataset` has rows that fit in shape, targets and scale, judged by its means
// and deviations.
absl::Status CheckDataset(const Dataset& dataset, const PinnedDraws& draws);

// FAILED_PRECONDITION / TOO_FEW_DRAWS unless `readable` draws are at least `needed`, and at least one.
absl::Status CheckEnough(const PinnedDraws& draws, int64_t readable, int64_t needed);

// Returns the number of averaged steps, each with all its kinds.
int64_t NumDraws(const ChainDraws& chain);
int64_t NumDraws(const std::vector<ChainDraws>& chains);
int64_t NumDraws(const PinnedDraws& draws);

// Selects the draws that `query` asks for among the readable ones: first the newest `members` of each chain, then every
// `every`-th of these, counted back from the newest, then at most `max_draws` over all chains. The last step keeps the
// newest draws and divides `max_draws` evenly: shares differ by at most one unless a chain has fewer draws, and the
// first chains get the remainder. Does not copy chains and segments without a selected draw. Deterministic in both
// arguments. A negative number in `query` counts as 0, which selects all; a number above the draws there are also does.
std::vector<ChainDraws> SelectDraws(const DrawQuery& query, const std::vector<const ChainDraws*>& readable);

// FAILED_PRECONDITION / TOO_FEW_DRAWS if a chain of `shares` has no readable draws, or no draws in `sums` of job `job`.
absl::Status CheckShares(const PinnedDraws& draws, const ChainShares& shares);
absl::Status CheckShares(const std::string& job, const std::vector<PartialPrediction>& sums, const ChainShares& shares);

// Returns the averaged draws [first, first + count) of each chain, counted back from its newest.
std::vector<ChainDraws> DrawsOfWave(const std::vector<ChainDraws>& chains, int64_t first, int64_t count);

}  // namespace chainfleet
