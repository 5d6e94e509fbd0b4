#include "server/predict/evaluation/non_finite_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace chainfleet {
namespace {

constexpr size_t kNamedSources = 8;

bool AllFinite(const std::vector<double>& values, size_t first, size_t count) {
  const auto begin = values.begin() + static_cast<int64_t>(first);
  return std::all_of(begin, begin + static_cast<int64_t>(count), [](double value) { return std::isfinite(value); });
}

bool RowIsFinite(const ClassSums& sums, size_t row) {
  const auto classes = static_cast<size_t>(sums.num_classes);
  return AllFinite(sums.sum_wp, row * classes, classes) && AllFinite(sums.sum_wh, row, 1);
}

bool RowIsFinite(const NumberSums& sums, size_t row) {
  if (!AllFinite(sums.sum_wm, row, 1) || !AllFinite(sums.sum_wm2, row, 1) || !AllFinite(sums.sum_wv, row, 1)) {
    return false;
  }
  if (sums.log_sum_wd.empty()) return true;
  const double log_density = sums.log_sum_wd[row];
  return !std::isnan(log_density) && log_density < std::numeric_limits<double>::infinity() &&
         AllFinite(sums.sum_wc, row, 1);
}

}  // namespace

bool IsFinite(const PartialPrediction& partial, size_t row) {
  return std::visit([row](const auto& sums) { return RowIsFinite(sums, row); }, partial.sums);
}

void NonFiniteRows::Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials) {
  for (int64_t row = 0; row < rows.num_rows; ++row) {
    bool finite = true;
    for (const PartialPrediction& partial : partials) {
      if (partial.num_draws == 0 || IsFinite(partial, static_cast<size_t>(row))) continue;
      finite = false;
      sources_.emplace(partial.chain, partial.kind);
    }
    if (finite) continue;
    first_ = count_ == 0 ? rows.first_row + row : std::min(first_, rows.first_row + row);
    ++count_;
  }
}

absl::Status NonFiniteRows::Check(const std::string& rows, int64_t num_rows) const {
  if (count_ == 0) return absl::OkStatus();
  std::vector<std::string> sources;
  for (const auto& [chain, kind] : sources_) {
    if (sources.size() == kNamedSources) break;
    sources.push_back(absl::StrCat(ToString(kind), " of chain ", chain.index));
  }
  if (sources_.size() > sources.size()) sources.push_back(absl::StrCat(sources_.size() - sources.size(), " more"));
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "draws return NaN or infinity for ", count_, " of ", num_rows, " rows of ", rows, ", the first is row ",
          first_, ": ", absl::StrJoin(sources, ", "),
          ". Leave those chains or kinds out of the selection or take a version from before they diverged; if every "
          "chain does, the rows are at fault: put a data set without them")),
      "NOT_FINITE");
}

}  // namespace chainfleet
