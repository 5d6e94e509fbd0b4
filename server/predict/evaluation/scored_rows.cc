#include "server/predict/evaluation/scored_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "core/base/limits.h"
#include "core/scores/calibration.h"
#include "core/scores/classification.h"
#include "core/scores/entropy.h"
#include "core/scores/histogram.h"
#include "core/scores/ranking.h"
#include "core/scores/temperature.h"
#include "server/predict/sums/aggregator.h"
#include "server/predict/sums/member_sums.h"

namespace chainfleet {
namespace {

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Scores ScoreSingles(const SingleDraws& single) {
  Scores scores;
  scores.what = "single " + ToString(single.kind);
  scores.num_draws = single.num_draws;
  scores.accuracy = single.hits / single.weighted_rows;
  scores.nll = -single.log_likelihood / single.weighted_rows;
  scores.brier = single.brier / single.weighted_rows;
  scores.ece = scores.ece_equal_mass = std::numeric_limits<double>::quiet_NaN();
  scores.mean_predictive_entropy = single.entropy / single.weighted_rows;
  return scores;
}

std::optional<double> IfKnown(double value) { return std::isnan(value) ? std::nullopt : std::optional(value); }

// Scores confidence against the labels: calibration, and whether uncertain rows are the wrong ones.
void ScoreConfidence(const PosteriorRows& posterior, const ScoredRows& rows, int ece_bins, Scores* scores) {
  std::vector<double> confidence, entropy_if_wrong, entropy_if_right;
  std::vector<bool> correct;
  const size_t classes = static_cast<size_t>(rows.num_classes());
  for (size_t row = 0; row < rows.targets().size(); ++row) {
    const std::span<const double> p(posterior.mean_probability.data() + row * classes, classes);
    const int64_t best = ArgMax(p);
    confidence.push_back(p[static_cast<size_t>(best)]);
    correct.push_back(best == rows.targets()[row]);
    (correct.back() ? entropy_if_right : entropy_if_wrong).push_back(posterior.predictive_entropy[row]);
  }
  const std::vector<ReliabilityBin> bins = ReliabilityBins(confidence, correct, ece_bins, Binning::kEqualWidth);
  for (const ReliabilityBin& bin : bins) {
    scores->reliability.push_back({bin.lower, bin.upper, bin.count, bin.mean_confidence, bin.accuracy});
  }
  scores->ece = ExpectedCalibrationError(bins);
  scores->ece_equal_mass =
      ExpectedCalibrationError(ReliabilityBins(confidence, correct, ece_bins, Binning::kEqualMass));
  scores->misclassification_auroc = IfKnown(Auroc(entropy_if_wrong, entropy_if_right));
  scores->misclassification_aupr = IfKnown(Aupr(entropy_if_wrong, entropy_if_right));
}

// Scores how well entropy separates the shifted set from the labelled one. REQUIRES: `scores` has the labelled set's
// histogram.
void ScoreShift(const PosteriorRows& posterior, const PosteriorRows& ood, double top, Scores* scores) {
  scores->ood_auroc = Auroc(ood.predictive_entropy, posterior.predictive_entropy);
  scores->ood_aupr = Aupr(ood.predictive_entropy, posterior.predictive_entropy);
  scores->ood_auroc_mutual_information = Auroc(ood.mutual_information, posterior.mutual_information);
  scores->ood_mean_predictive_entropy = Mean(ood.predictive_entropy);
  scores->ood_entropy_histogram = Histogram(ood.predictive_entropy, top, limits::kEntropyBins);
  scores->entropy_divergence = SymmetrisedDivergence(scores->entropy_histogram, scores->ood_entropy_histogram);
}

Scores ScorePosterior(const PosteriorRows& posterior, const ScoredRows& rows, const PosteriorRows* ood, int ece_bins) {
  Scores scores;
  scores.what = posterior.what;
  scores.num_draws = posterior.draws_used * static_cast<int64_t>(posterior.kinds.size());
  scores.accuracy = Accuracy(posterior.mean_probability, rows.num_classes(), rows.targets());
  scores.nll = NegativeLogLikelihood(posterior.mean_probability, rows.num_classes(), rows.targets());
  scores.brier = BrierScore(posterior.mean_probability, rows.num_classes(), rows.targets());
  ScoreConfidence(posterior, rows, ece_bins, &scores);
  scores.mean_predictive_entropy = Mean(posterior.predictive_entropy);
  scores.mean_mutual_information = Mean(posterior.mutual_information);
  const double top = std::log(static_cast<double>(std::max<int64_t>(rows.num_classes(), 2)));
  scores.entropy_histogram = Histogram(posterior.predictive_entropy, top, limits::kEntropyBins);
  if (ood != nullptr) ScoreShift(posterior, *ood, top, &scores);
  return scores;
}

}  // namespace

void SingleDraws::Add(const SingleDraws& other) {
  num_draws = std::max(num_draws, other.num_draws);
  log_likelihood += other.log_likelihood;
  hits += other.hits;
  weighted_rows += other.weighted_rows;
  brier += other.brier;
  entropy += other.entropy;
}

ScoredRows::ScoredRows(const std::vector<DrawKind>& kinds, int64_t num_rows, int64_t num_classes,
                       std::vector<int32_t> labels)
    : kinds_(kinds), num_classes_(num_classes), labels_(std::move(labels)) {
  for (const DrawKind kind : kinds) posteriors_.push_back({.what = ToString(kind), .kinds = {kind}});
  posteriors_.push_back({.what = "all", .kinds = kinds});
  for (PosteriorRows& posterior : posteriors_) {
    if (!labels_.empty()) posterior.mean_probability.resize(static_cast<size_t>(num_rows * num_classes));
    posterior.predictive_entropy.resize(static_cast<size_t>(num_rows));
    posterior.mutual_information.resize(static_cast<size_t>(num_rows));
  }
}

void ScoredRows::Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials) {
  std::vector<const PartialPrediction*> sorted;
  for (const PartialPrediction& partial : partials) sorted.push_back(&partial);
  std::ranges::sort(sorted, {}, [](const PartialPrediction* p) { return std::tie(p->chain, p->kind); });
  for (PosteriorRows& posterior : posteriors_) AddToPosterior(rows, sorted, &posterior);
  if (labels_.empty()) return;
  for (const PartialPrediction* partial : sorted) {
    SingleDraws& block = singles_[partial->kind][rows.first_row];
    const int64_t draws = block.num_draws + partial->num_draws;
    block.Add(SumSingles(rows, *partial));
    block.num_draws = draws;
  }
}

void ScoredRows::AddToPosterior(const RowBlock& rows, const std::vector<const PartialPrediction*>& partials,
                                PosteriorRows* posterior) const {
  std::vector<const PartialPrediction*> chosen;
  std::ranges::copy_if(partials, std::back_inserter(chosen),
                       [&](const auto* p) { return std::ranges::count(posterior->kinds, p->kind) > 0; });
  const Prediction block = Average(std::move(chosen), /*with_errors=*/false);
  posterior->draws_used =
      posterior->draws_used < 0 ? block.draws_used : std::min(posterior->draws_used, block.draws_used);
  if (!labels_.empty()) {
    std::ranges::copy(block.scores.mean_probability,
                      posterior->mean_probability.begin() + rows.first_row * num_classes_);
  }
  std::ranges::copy(block.scores.predictive_entropy, posterior->predictive_entropy.begin() + rows.first_row);
  std::ranges::copy(block.scores.mutual_information, posterior->mutual_information.begin() + rows.first_row);
}

SingleDraws ScoredRows::SumSingles(const RowBlock& rows, const PartialPrediction& partial) const {
  SingleDraws sums;
  sums.log_likelihood = WeightedSum(partial.draw_log_likelihood, partial);
  sums.hits = WeightedSum(partial.classes().draw_hits, partial);
  sums.weighted_rows = partial.sum_w * static_cast<double>(rows.num_rows);
  const ClassSums& classes = partial.classes();
  for (const double value : classes.sum_wh) sums.entropy += value;
  // sum_k (p_k - [k = y])^2 = sum_k p_k^2 - 2 p_y + 1, weighted and summed over draws.
  for (const double value : classes.sum_wp2) sums.brier += value;
  for (int64_t row = 0; row < rows.num_rows; ++row) {
    const int64_t label = labels_[static_cast<size_t>(rows.first_row + row)];
    sums.brier += partial.sum_w - 2 * classes.sum_wp[static_cast<size_t>(row * num_classes_ + label)];
  }
  return sums;
}

std::vector<SingleDraws> ScoredRows::Singles() const {
  std::vector<SingleDraws> singles;
  for (const DrawKind kind : kinds_) {
    SingleDraws& total = singles.emplace_back(SingleDraws{.kind = kind});
    if (const auto blocks = singles_.find(kind); blocks != singles_.end()) {
      for (const auto& [first_row, block] : blocks->second) total.Add(block);
    }
  }
  return singles;
}

int64_t ScoredRows::draws_used() const {
  int64_t used = std::numeric_limits<int64_t>::max();
  for (const PosteriorRows& posterior : posteriors_) used = std::min(used, posterior.draws_used);
  return std::max<int64_t>(used, 0);
}

Scores ScoreAll(const ScoredRows& rows, int ece_bins) {
  return ScorePosterior(rows.posteriors().back(), rows, nullptr, ece_bins);
}

std::vector<ExampleRow> ExampleRows(const ScoredRows& rows, int64_t count) {
  const PosteriorRows& all = rows.posteriors().back();
  const auto entropy = [&](int64_t row) { return all.predictive_entropy[static_cast<size_t>(row)]; };
  std::vector<int64_t> order(rows.targets().size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::erase_if(order, [&](int64_t row) { return std::isnan(entropy(row)); });  // NaN has no rank
  const int64_t num_rows = static_cast<int64_t>(order.size());
  const int64_t certain = std::min(count, (num_rows + 1) / 2), uncertain = std::min(count, num_rows - certain);
  const auto rank = [](auto score) { return [score](int64_t row) { return std::pair(score(row), row); }; };
  std::ranges::partial_sort(order, order.begin() + certain, {}, rank(entropy));
  std::ranges::partial_sort(order.begin() + certain, order.begin() + certain + uncertain, order.end(), {},
                            rank([&](int64_t row) { return -entropy(row); }));
  order.resize(static_cast<size_t>(certain + uncertain));
  const auto width = static_cast<size_t>(rows.num_classes());
  std::vector<ExampleRow> examples;
  for (const int64_t row : order) {
    const std::span<const double> p(all.mean_probability.data() + static_cast<size_t>(row) * width, width);
    const int64_t best = ArgMax(p);
    examples.push_back({.row = row,
                        .label = rows.targets()[static_cast<size_t>(row)],
                        .predicted = static_cast<int32_t>(best),
                        .max_probability = p[static_cast<size_t>(best)],
                        .predictive_entropy = entropy(row),
                        .mutual_information = all.mutual_information[static_cast<size_t>(row)]});
  }
  return examples;
}

std::vector<Scores> ScoreTable(const ScoredRows& rows, const ScoredRows* ood, int ece_bins) {
  std::vector<Scores> table;
  for (const SingleDraws& single : rows.Singles()) table.push_back(ScoreSingles(single));
  for (size_t i = 0; i < rows.posteriors().size(); ++i) {
    table.push_back(ScorePosterior(rows.posteriors()[i], rows, ood ? &ood->posteriors()[i] : nullptr, ece_bins));
  }
  return table;
}

std::vector<Scores> CalibratedScores(const ScoredRows& rows, const ScoredRows& held_out, int ece_bins) {
  const int64_t classes = rows.num_classes();
  std::vector<Scores> table;
  for (size_t i = 0; i < rows.posteriors().size(); ++i) {
    const double temperature = FitTemperature(held_out.posteriors()[i].mean_probability, classes, held_out.targets());
    PosteriorRows scaled = rows.posteriors()[i];
    scaled.what = "calibrated " + scaled.what;
    scaled.mean_probability = ScaleTemperature(scaled.mean_probability, classes, temperature);
    for (size_t row = 0; row < scaled.predictive_entropy.size(); ++row) {
      const size_t width = static_cast<size_t>(classes);
      scaled.predictive_entropy[row] = Entropy({scaled.mean_probability.data() + row * width, width});
    }
    Scores& scores = table.emplace_back(ScorePosterior(scaled, rows, nullptr, ece_bins));
    scores.mean_mutual_information = std::numeric_limits<double>::quiet_NaN();
    scores.temperature = temperature;
  }
  return table;
}

}  // namespace chainfleet
