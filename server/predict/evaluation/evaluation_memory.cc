#include "server/predict/evaluation/evaluation_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

constexpr double kDouble = sizeof(double), kTarget = sizeof(int32_t);
constexpr double kEntropyValues = 2,
                 kNumberValues = 4;  // besides the probabilities; mean, variance, log density, distribution function

// Per row of classes while rows are ranked and binned: confidence, entropy of right and wrong rows, and an order.
constexpr double kSortedBytes = 64;

constexpr double kMostBytes = 9e18;

int64_t MiB(int64_t bytes) { return bytes / limits::kMiB + (bytes % limits::kMiB == 0 ? 0 : 1); }

}  // namespace

int64_t EvaluationBytes(const EvaluatedRows& rows, size_t num_kinds, const Targets& targets) {
  const bool numbers = std::holds_alternative<Numbers>(targets);
  const auto labelled = static_cast<double>(rows.labelled), ood = static_cast<double>(rows.ood),
             held_out = static_cast<double>(rows.held_out), classes = static_cast<double>(NumClasses(targets));
  const double averages = static_cast<double>(num_kinds) + (rows.weighted ? 3 : 1);  // each kind, and all
  const double values = numbers ? kNumberValues : classes + kEntropyValues;
  double bytes = (kTarget + averages * values * kDouble) * (labelled * (rows.changed ? 2 : 1) + held_out);
  if (!numbers) bytes += averages * kEntropyValues * kDouble * ood + kSortedBytes * (labelled + ood);
  // The logits of the held-out rows; later one average and its scaled copy.
  if (held_out > 0) bytes += std::max(held_out * classes, labelled * (2 * classes + kEntropyValues)) * kDouble;
  return static_cast<int64_t>(std::min(bytes, kMostBytes));
}

absl::Status CheckEvaluationBytes(int64_t bytes, int64_t max_bytes) {
  if (bytes <= max_bytes) return absl::OkStatus();
  const int64_t parts = bytes / max_bytes + (bytes % max_bytes == 0 ? 0 : 1);
  return absl::InvalidArgumentError(
      absl::StrCat("to score these rows takes ", MiB(bytes),
                   " MiB of the server's memory (rows x classes x averages), all "
                   "evaluations together have ",
                   MiB(max_bytes), " MiB: put the data sets in ", parts,
                   " parts or more and evaluate each, or ask for one kind, or leave calibration and corruptions to an "
                   "evaluation of their own"));
}

absl::Status HoldEvaluationBytes(int64_t bytes, ByteShare* share) {
  if (share->Add(bytes)) return absl::OkStatus();
  return BoundReached("evaluation_bytes",
                      absl::StrCat("to score these rows takes ", MiB(bytes),
                                   " MiB of the server's memory, and other evaluations that run hold too "
                                   "much of what all have: retry when one has ended, or evaluate fewer rows"),
                      "QUEUE_FULL");
}

}  // namespace chainfleet
