#include "server/predict/serving/call_bounds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/content_limits.h"
#include "core/base/saturating.h"
#include "core/domain/predictive_scores.h"
#include "server/predict/serving/draw_selection.h"

namespace chainfleet {

int64_t ScoreBytes(const Targets& targets, int64_t num_quantiles) {
  return 2 * (num_quantiles + ScoreValues(targets)) * static_cast<int64_t>(sizeof(double));
}

absl::Status CheckReplyBytes(int64_t num_rows, int64_t row_bytes) {
  const int64_t rows = limits::kMaxReplyBytes / std::max<int64_t>(row_bytes, 1);
  if (num_rows <= rows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the answer for ", num_rows,
                                                 " rows is more than a message holds: ask for ", rows,
                                                 " rows at a time, or for fewer outputs"));
}

absl::Status CheckQuantiles(const std::vector<double>& levels, const PredictPlan& plan) {
  if (levels.empty()) return absl::OkStatus();
  if (const auto* classes = std::get_if<Classes>(&plan.targets)) {
    return absl::InvalidArgumentError(absl::StrCat("job ", plan.job, " learns ", classes->count,
                                                   " classes: quantiles are of jobs that learn numbers"));
  }
  if (levels.size() > static_cast<size_t>(limits::kMaxQuantiles)) {
    return absl::InvalidArgumentError(
        absl::StrCat(levels.size(), " quantiles are asked: at most ", limits::kMaxQuantiles, " at a time"));
  }
  for (const double level : levels) {
    if (level > 0 && level < 1) continue;
    return absl::InvalidArgumentError(absl::StrCat("quantile ", level, " is not a level above 0 and below 1"));
  }
  return absl::OkStatus();
}

absl::Status CheckGradientBytes(const PredictPlan& plan, int64_t num_rows) {
  const int64_t num_quantiles = std::holds_alternative<Numbers>(plan.targets) ? limits::kMaxQuantiles : 0;
  const int64_t gradient = SaturatingMultiply(GradientValues(plan), static_cast<int64_t>(sizeof(double)));
  return CheckReplyBytes(num_rows, SaturatingAdd(gradient, ScoreBytes(plan.targets, num_quantiles)));
}

absl::StatusOr<int64_t> CheckMemberBytes(const PinnedDraws& draws, size_t num_kinds, int64_t num_rows, bool replied,
                                         bool gradients) {
  const int64_t num_draws = SaturatingMultiply(NumDraws(draws), static_cast<int64_t>(num_kinds));
  const int64_t values =
      SaturatingAdd(std::max<int64_t>(NumClasses(draws.plan->targets), 2), gradients ? GradientValues(*draws.plan) : 0);
  const int64_t draw_bytes = SaturatingMultiply(values, static_cast<int64_t>(sizeof(float)));
  const int64_t num_quantiles = std::holds_alternative<Numbers>(draws.plan->targets) ? limits::kMaxQuantiles : 0;
  const int64_t score_bytes = replied ? ScoreBytes(draws.plan->targets, num_quantiles) : 0;
  const int64_t row_bytes = SaturatingAdd(SaturatingMultiply(num_draws, draw_bytes), score_bytes);
  const int64_t weights = SaturatingMultiply(num_draws, static_cast<int64_t>(sizeof(double)));
  const int64_t bound = replied ? std::min(limits::kMaxMemberBytes, limits::kMaxReplyBytes) : limits::kMaxMemberBytes;
  const int64_t rows = std::max<int64_t>(bound - weights, 0) / row_bytes;
  if (num_rows <= rows) return num_rows * row_bytes + weights;
  return absl::InvalidArgumentError(absl::StrCat(
      "the predictions of ", num_draws, " single draws for ", num_rows, " rows take more than ", bound / limits::kMiB,
      " MiB: ask for ", rows > 0 ? absl::StrCat("at most ", rows, " rows at a time, or for ") : "",
      "fewer draws (members, every, max_draws)"));
}

absl::StatusOr<int64_t> CheckSumBytes(const PinnedDraws& draws, size_t num_kinds, int64_t num_rows, int64_t num_parts,
                                      bool gradients) {
  const auto sums = static_cast<int64_t>(draws.chains.size() * num_kinds);
  const int64_t values = SaturatingAdd(std::max<int64_t>(3 * NumClasses(draws.plan->targets) + 1, 3),
                                       gradients ? GradientValues(*draws.plan) : 0);
  const int64_t row_bytes =
      std::max<int64_t>(SaturatingProduct(sums, num_parts, values, static_cast<int64_t>(sizeof(double))), 1);
  const int64_t rows = limits::kMaxShardResultBytes / row_bytes;
  if (num_rows <= rows) return num_rows * row_bytes;
  return absl::InvalidArgumentError(absl::StrCat("the sums of ", num_rows, " rows over ", draws.chains.size(),
                                                 " chains are too many to keep: ask for at most ", rows,
                                                 " rows at a time, or for fewer chains"));
}

}  // namespace chainfleet
