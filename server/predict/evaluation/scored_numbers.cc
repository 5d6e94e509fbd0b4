#include "server/predict/evaluation/scored_numbers.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/scores/regression.h"
#include "server/predict/sums/aggregator.h"
#include "server/predict/sums/member_sums.h"

namespace chainfleet {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Scores WithoutClasses(std::string what, int64_t num_draws) {
  Scores scores;
  scores.what = std::move(what);
  scores.num_draws = num_draws;
  scores.accuracy = scores.brier = scores.ece = scores.ece_equal_mass = kNone;
  scores.mean_predictive_entropy = scores.mean_mutual_information = kNone;
  return scores;
}

}  // namespace

ScoredNumbers::ScoredNumbers(const std::vector<DrawKind>& kinds, std::vector<float> targets)
    : kinds_(kinds), targets_(std::move(targets)) {
  for (const DrawKind kind : kinds) posteriors_.push_back({.what = ToString(kind), .kinds = {kind}});
  posteriors_.push_back({.what = "all", .kinds = kinds});
  for (NumberRows& posterior : posteriors_) {
    for (auto* values : {&posterior.mean, &posterior.log_density, &posterior.distribution}) {
      values->resize(targets_.size());
    }
  }
}

void ScoredNumbers::Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials) {
  std::vector<const PartialPrediction*> sorted;
  for (const PartialPrediction& partial : partials) sorted.push_back(&partial);
  std::ranges::sort(sorted, {}, [](const PartialPrediction* p) { return std::tie(p->chain, p->kind); });
  for (NumberRows& posterior : posteriors_) AddToPosterior(rows, sorted, &posterior);
  for (const PartialPrediction* partial : sorted) AddToSingles(rows, *partial);
}

void ScoredNumbers::AddToPosterior(const RowBlock& rows, const std::vector<const PartialPrediction*>& partials,
                                   NumberRows* posterior) const {
  std::vector<const PartialPrediction*> chosen;
  std::ranges::copy_if(partials, std::back_inserter(chosen), [&](const auto* p) {
    return p->num_draws > 0 && std::ranges::count(posterior->kinds, p->kind) > 0;
  });
  const Prediction block = Average(chosen, /*with_errors=*/false);
  posterior->draws_used =
      posterior->draws_used < 0 ? block.draws_used : std::min(posterior->draws_used, block.draws_used);
  double weight = 0;
  for (const PartialPrediction* partial : chosen) weight += partial->sum_w;
  for (size_t i = 0; i < block.scores.mean.size(); ++i) {
    const size_t row = static_cast<size_t>(rows.first_row) + i;
    double log_density = -std::numeric_limits<double>::infinity(), distribution = 0;
    for (const PartialPrediction* partial : chosen) {
      log_density = LogAddExp(log_density, partial->numbers().log_sum_wd[i]);
      distribution += partial->numbers().sum_wc[i];
    }
    posterior->mean[row] = block.scores.mean[i];
    posterior->log_density[row] = log_density - std::log(weight);
    posterior->distribution[row] = distribution / weight;
  }
}

void ScoredNumbers::AddToSingles(const RowBlock& rows, const PartialPrediction& partial) {
  Singles& sums = singles_[partial.kind][rows.first_row];
  sums.num_draws += partial.num_draws;
  sums.log_likelihood += WeightedSum(partial.draw_log_likelihood, partial);
  if (partial.num_draws == 0) return;
  sums.weighted_rows += partial.sum_w * static_cast<double>(rows.num_rows);
  const NumberSums& numbers = partial.numbers();
  for (size_t i = 0; i < numbers.sum_wm.size(); ++i) {
    const double y = targets_[static_cast<size_t>(rows.first_row) + i];
    sums.squared_error += numbers.sum_wm2[i] - 2 * y * numbers.sum_wm[i] + y * y * partial.sum_w;
  }
}

int64_t ScoredNumbers::draws_used() const {
  int64_t used = std::numeric_limits<int64_t>::max();
  for (const NumberRows& posterior : posteriors_) used = std::min(used, posterior.draws_used);
  return std::max<int64_t>(used, 0);
}

Scores ScoredNumbers::ScoreSingles(DrawKind kind) const {
  Singles total;
  if (const auto blocks = singles_.find(kind); blocks != singles_.end()) {
    for (const auto& [first_row, block] : blocks->second) {
      total.num_draws = std::max(total.num_draws, block.num_draws);
      total.log_likelihood += block.log_likelihood;
      total.weighted_rows += block.weighted_rows;
      total.squared_error += block.squared_error;
    }
  }
  Scores scores = WithoutClasses("single " + ToString(kind), total.num_draws);
  scores.nll = -total.log_likelihood / total.weighted_rows;
  scores.rmse = std::sqrt(std::max(total.squared_error, 0.0) / total.weighted_rows);
  return scores;
}

Scores ScoredNumbers::ScorePosterior(const NumberRows& posterior) const {
  Scores scores = WithoutClasses(posterior.what, posterior.draws_used * static_cast<int64_t>(posterior.kinds.size()));
  scores.nll = -std::accumulate(posterior.log_density.begin(), posterior.log_density.end(), 0.0) /
               static_cast<double>(targets_.size());
  scores.rmse = RootMeanSquareError(posterior.mean, targets_);
  scores.coverage_90 = CentralCoverage(posterior.distribution, 0.9);
  return scores;
}

std::vector<Scores> ScoredNumbers::Table() const {
  std::vector<Scores> table;
  for (const DrawKind kind : kinds_) table.push_back(ScoreSingles(kind));
  for (const NumberRows& posterior : posteriors_) table.push_back(ScorePosterior(posterior));
  return table;
}

}  // namespace chainfleet
