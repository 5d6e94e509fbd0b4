#include "server/predict/evaluation/chain_densities.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/saturating.h"
#include "core/scores/classification.h"
#include "core/scores/regression.h"
#include "core/scores/stacking.h"

namespace chainfleet {
namespace {

// Seconds of one core: 7,900 rows of 256 chains, or 2 million rows of 16.
constexpr int64_t kMostStackingWork = int64_t{1} << 29;

// The logarithm of the weighted sum of densities at a row's target.
double LogSum(const PartialPrediction& partial, const std::vector<int32_t>& labels, size_t row, size_t first_row) {
  const ClassSums& sums = partial.classes();
  const size_t label = static_cast<size_t>(labels[first_row + row]);
  const double sum = sums.sum_wp[row * static_cast<size_t>(sums.num_classes) + label];
  return LogProbability(sum);
}

double LogSum(const PartialPrediction& partial, const std::vector<float>&, size_t row, size_t) {
  return partial.numbers().log_sum_wd[row];
}

}  // namespace

absl::Status CheckStacking(int64_t num_rows, int64_t num_chains) {
  if (num_rows == 0 || SaturatingProduct(num_rows + num_chains, num_chains, num_chains) <= kMostStackingWork) {
    return absl::OkStatus();
  }
  const int64_t rows = std::max<int64_t>(kMostStackingWork / (num_chains * num_chains) - num_chains, 0);
  return InvalidFields({{"stacking_dataset", absl::StrCat("has ", num_rows, " rows, and weights of ", num_chains,
                                                          " chains can be fitted to at most ", rows,
                                                          ": give fewer rows, or choose fewer chains")}});
}

int64_t StackingBytes(int64_t num_rows, int64_t num_chains) {
  if (num_rows == 0) return 0;
  // Densities and their logarithms, a matrix of slopes and its factor.
  return SaturatingProduct(2 * (num_rows + num_chains), num_chains, static_cast<int64_t>(sizeof(double)));
}

ChainDensities::ChainDensities(const std::vector<ChainDraws>& chains, TargetValues targets)
    : targets_(std::move(targets)) {
  for (const ChainDraws& chain : chains) {
    columns_[chain.chain] = chains_.size();
    chains_.push_back({.chain = chain.chain});
  }
  const size_t rows = std::visit([](const auto& values) { return values.size(); }, targets_);
  log_density_.assign(rows * chains_.size(), -std::numeric_limits<double>::infinity());
}

void ChainDensities::Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials) {
  const auto first_row = static_cast<size_t>(rows.first_row);
  std::vector<double> weights(chains_.size());
  for (const PartialPrediction& partial : partials) {
    if (partial.num_draws > 0) weights[columns_.at(partial.chain)] += partial.sum_w;
  }
  std::vector<double> log_weights;
  for (const double weight : weights) log_weights.push_back(std::log(weight));
  for (const PartialPrediction& partial : partials) {
    if (partial.num_draws == 0) continue;
    const size_t column = columns_.at(partial.chain);
    for (size_t row = 0; row < static_cast<size_t>(rows.num_rows); ++row) {
      double& sum = log_density_[(first_row + row) * chains_.size() + column];
      const double log_sum =
          std::visit([&](const auto& targets) { return LogSum(partial, targets, row, first_row); }, targets_);
      sum = LogAddExp(sum, log_sum - log_weights[column]);
    }
  }
}

std::vector<ChainWeight> ChainDensities::Weights() const {
  std::vector<ChainWeight> weights = chains_;
  const auto count = static_cast<int64_t>(weights.size());
  const std::vector<double> stacking = StackingWeights(log_density_, count);
  const std::vector<double> pseudo_bma = PseudoBmaWeights(log_density_, count);
  for (size_t k = 0; k < weights.size(); ++k) {
    weights[k].stacking = stacking[k];
    weights[k].pseudo_bma = pseudo_bma[k];
  }
  return weights;
}

}  // namespace chainfleet
