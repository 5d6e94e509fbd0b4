#include "server/predict/evaluation/scored_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/limits.h"
#include "core/scores/calibration.h"
#include "core/scores/classification.h"
#include "core/scores/entropy.h"
#include "core/scores/histogram.h"
#include "core/scores/ranking.h"
#include "core/scores/regression.h"
#include "core/scores/temperature.h"
#include "server/predict/sums/aggregator.h"
#include "server/predict/sums/member_sums.h"

namespace chainfleet {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void Put(const RowBlock& rows, const std::vector<const PartialPrediction*>&, const Prediction& block, ClassRows* to) {
  const ClassScores& scores = block.scores.classes();
  const auto put = [&](const std::vector<double>& values, int64_t width, std::vector<double>* all) {
    if (!all->empty()) std::ranges::copy(values, all->begin() + rows.first_row * width);
  };
  put(scores.mean_probability, NumClasses(block.targets), &to->mean_probability);
  put(scores.predictive_entropy, 1, &to->predictive_entropy);
  put(scores.mutual_information, 1, &to->mutual_information);
}

void Put(const RowBlock& rows, const std::vector<const PartialPrediction*>& partials, const Prediction& block,
         NumberRows* to) {
  const NumberScores& scores = block.scores.numbers();
  const std::vector<double>& mean = scores.mean;
  double weight = 0;
  for (const PartialPrediction* partial : partials) weight += partial->sum_w;
  for (size_t i = 0; i < mean.size(); ++i) {
    const size_t row = static_cast<size_t>(rows.first_row) + i;
    double log_density = -std::numeric_limits<double>::infinity(), distribution = 0;
    for (const PartialPrediction* partial : partials) {
      log_density = LogAddExp(log_density, partial->numbers().log_sum_wd[i]);
      distribution += partial->numbers().sum_wc[i];
    }
    to->mean[row] = mean[i];
    to->variance[row] = scores.variance_aleatoric[i] + scores.variance_epistemic[i];
    to->log_density[row] = log_density - std::log(weight);
    to->distribution[row] = distribution / weight;
  }
}

ChainShares SharesOf(const std::vector<ChainWeight>& weights, double ChainWeight::*weight) {
  ChainShares shares;
  for (const ChainWeight& chain : weights) shares[chain.chain.index] = chain.*weight;
  return shares;
}

void AddErrors(const RowBlock& rows, const PartialPrediction& partial, const std::vector<int32_t>& labels,
               SingleDraws* sums) {
  const ClassSums& classes = partial.classes();
  sums->hits += WeightedSum(classes.draw_hits, partial);
  sums->entropy += std::accumulate(classes.sum_wh.begin(), classes.sum_wh.end(), 0.0);
  // sum_k (p_k - [k = y])^2 = sum_k p_k^2 - 2 p_y + 1, weighted and summed over draws.
  double brier = std::accumulate(classes.sum_wp2.begin(), classes.sum_wp2.end(), 0.0);
  for (int64_t row = 0; row < rows.num_rows; ++row) {
    const int64_t label = labels[static_cast<size_t>(rows.first_row + row)];
    brier += partial.sum_w - 2 * classes.sum_wp[static_cast<size_t>(row * classes.num_classes + label)];
  }
  sums->brier += brier;
}

void AddErrors(const RowBlock& rows, const PartialPrediction& partial, const std::vector<float>& targets,
               SingleDraws* sums) {
  const NumberSums& numbers = partial.numbers();
  for (size_t i = 0; i < numbers.sum_wm.size(); ++i) {
    const double y = targets[static_cast<size_t>(rows.first_row) + i];
    sums->squared_error += numbers.sum_wm2[i] - 2 * y * numbers.sum_wm[i] + y * y * partial.sum_w;
  }
}

void ScoreSingles(const SingleDraws& single, const std::vector<int32_t>&, Scores* scores) {
  scores->accuracy = single.hits / single.weighted_rows;
  scores->brier = single.brier / single.weighted_rows;
  scores->mean_predictive_entropy = single.entropy / single.weighted_rows;
  scores->mean_mutual_information = 0;
}

void ScoreSingles(const SingleDraws& single, const std::vector<float>&, Scores* scores) {
  scores->rmse = std::sqrt(std::max(single.squared_error, 0.0) / single.weighted_rows);
}

std::optional<double> IfKnown(double value) { return std::isnan(value) ? std::nullopt : std::optional(value); }

// Scores confidence against the labels: calibration, and whether uncertain rows are the wrong ones.
void ScoreConfidence(const ClassRows& average, const ScoredRows& rows, int ece_bins, Scores* scores) {
  std::vector<double> confidence, entropy_if_wrong, entropy_if_right;
  std::vector<bool> correct;
  const size_t classes = static_cast<size_t>(rows.num_classes());
  for (size_t row = 0; row < rows.labels().size(); ++row) {
    const std::span<const double> p(average.mean_probability.data() + row * classes, classes);
    const int64_t best = ArgMax(p);
    confidence.push_back(p[static_cast<size_t>(best)]);
    correct.push_back(best == rows.labels()[row]);
    (correct.back() ? entropy_if_right : entropy_if_wrong).push_back(average.predictive_entropy[row]);
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
void ScoreShift(const ClassRows& average, const ClassRows& ood, double top, Scores* scores) {
  scores->ood_auroc = Auroc(ood.predictive_entropy, average.predictive_entropy);
  scores->ood_aupr = Aupr(ood.predictive_entropy, average.predictive_entropy);
  scores->ood_auroc_mutual_information = Auroc(ood.mutual_information, average.mutual_information);
  scores->ood_mean_predictive_entropy = Mean(ood.predictive_entropy);
  scores->ood_entropy_histogram = Histogram(ood.predictive_entropy, top, limits::kEntropyBins);
  scores->entropy_divergence = SymmetrisedDivergence(scores->entropy_histogram, scores->ood_entropy_histogram);
}

// The scores that only classes have are NaN.
Scores NamedScores(std::string what, int64_t num_draws) {
  Scores scores;
  scores.what = std::move(what);
  scores.num_draws = num_draws;
  scores.accuracy = scores.brier = scores.ece = scores.ece_equal_mass = kNone;
  scores.mean_predictive_entropy = scores.mean_mutual_information = kNone;
  return scores;
}

void ScoreAverage(const ClassRows& average, const ScoredRows& rows, const PosteriorRows* ood, int ece_bins,
                  Scores* scores) {
  scores->accuracy = Accuracy(average.mean_probability, rows.num_classes(), rows.labels());
  scores->nll = NegativeLogLikelihood(average.mean_probability, rows.num_classes(), rows.labels());
  scores->brier = BrierScore(average.mean_probability, rows.num_classes(), rows.labels());
  ScoreConfidence(average, rows, ece_bins, scores);
  scores->mean_predictive_entropy = Mean(average.predictive_entropy);
  scores->mean_mutual_information = Mean(average.mutual_information);
  const double top = std::log(static_cast<double>(std::max<int64_t>(rows.num_classes(), 2)));
  scores->entropy_histogram = Histogram(average.predictive_entropy, top, limits::kEntropyBins);
  if (ood != nullptr) ScoreShift(average, ood->classes(), top, scores);
}

void ScoreAverage(const NumberRows& average, const ScoredRows& rows, const PosteriorRows*, int, Scores* scores) {
  scores->nll = -Mean(average.log_density);
  scores->rmse = RootMeanSquareError(average.mean, std::get<std::vector<float>>(rows.targets()));
  scores->coverage_90 = CentralCoverage(average.distribution, 0.9);
}

Scores ScorePosterior(const PosteriorRows& posterior, const ScoredRows& rows, const PosteriorRows* ood, int ece_bins) {
  Scores scores = NamedScores(posterior.what, posterior.draws_used * static_cast<int64_t>(posterior.kinds.size()));
  std::visit([&](const auto& average) { ScoreAverage(average, rows, ood, ece_bins, &scores); }, posterior.rows);
  return scores;
}

}  // namespace

void SingleDraws::Add(const SingleDraws& other) {
  num_draws = std::max(num_draws, other.num_draws);
  weighted_rows += other.weighted_rows;
  log_likelihood += other.log_likelihood;
  hits += other.hits;
  brier += other.brier;
  entropy += other.entropy;
  squared_error += other.squared_error;
}

ScoredRows::ScoredRows(const std::vector<DrawKind>& kinds, int64_t num_rows, const Targets& learned,
                       std::optional<TargetValues> targets, const std::vector<ChainWeight>& weights)
    : kinds_(kinds), num_classes_(NumClasses(learned)), targets_(std::move(targets)) {
  for (const DrawKind kind : kinds) posteriors_.push_back({.what = ToString(kind), .kinds = {kind}});
  if (!weights.empty()) {
    posteriors_.push_back({.what = "stacked", .kinds = kinds, .shares = SharesOf(weights, &ChainWeight::stacking)});
    posteriors_.push_back(
        {.what = "pseudo-BMA", .kinds = kinds, .shares = SharesOf(weights, &ChainWeight::pseudo_bma)});
  }
  posteriors_.push_back({.what = "all", .kinds = kinds});
  const std::vector<double> values(static_cast<size_t>(num_rows));
  const auto probabilities = static_cast<size_t>(targets_ ? num_rows * num_classes_ : 0);
  for (PosteriorRows& posterior : posteriors_) {
    if (std::holds_alternative<Numbers>(learned)) {
      posterior.rows = NumberRows{values, values, values, values};
    } else {
      posterior.rows = ClassRows{std::vector<double>(probabilities), values, values};
    }
  }
}

void ScoredRows::Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials) {
  const std::vector<const PartialPrediction*> sorted = InOrder(PointersTo(partials));
  for (PosteriorRows& posterior : posteriors_) AddToPosterior(rows, sorted, &posterior);
  if (!targets_) return;
  for (const PartialPrediction* partial : sorted) {
    SingleDraws& block = singles_[partial->kind][rows.first_row];
    block.num_draws += partial->num_draws;
    block.weighted_rows += partial->sum_w * static_cast<double>(rows.num_rows);
    block.log_likelihood += WeightedSum(partial->draw_log_likelihood, *partial);
    std::visit([&](const auto& targets) { AddErrors(rows, *partial, targets, &block); }, *targets_);
  }
}

void ScoredRows::AddToPosterior(const RowBlock& rows, const std::vector<const PartialPrediction*>& partials,
                                PosteriorRows* posterior) const {
  std::vector<const PartialPrediction*> chosen;
  std::ranges::copy_if(partials, std::back_inserter(chosen),
                       [&](const auto* p) { return std::ranges::count(posterior->kinds, p->kind) > 0; });
  std::vector<PartialPrediction> weighed;
  if (!posterior->shares.empty()) {
    for (const PartialPrediction* partial : chosen) weighed.push_back(*partial);
    weighed = Weighed(std::move(weighed), posterior->shares);
    chosen = PointersTo(weighed);
  }
  const Prediction block = Average(chosen, /*with_errors=*/false);
  int64_t& used = posterior->draws_used;
  used = used < 0 ? block.draws_used : std::min(used, block.draws_used);
  if (chosen.empty()) return;
  std::visit([&](auto& average) { Put(rows, chosen, block, &average); }, posterior->rows);
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
  for (const PosteriorRows& posterior : posteriors_) {
    if (posterior.shares.empty()) used = std::min(used, posterior.draws_used);
  }
  return std::max<int64_t>(used, 0);
}

Scores ScoreAll(const ScoredRows& rows, int ece_bins) {
  return ScorePosterior(rows.posteriors().back(), rows, nullptr, ece_bins);
}

std::vector<ExampleRow> ExampleRows(const ScoredRows& rows, int64_t count) {
  const ClassRows& all = rows.posteriors().back().classes();
  const auto entropy = [&](int64_t row) { return all.predictive_entropy[static_cast<size_t>(row)]; };
  std::vector<int64_t> order(rows.labels().size());
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
                        .label = rows.labels()[static_cast<size_t>(row)],
                        .predicted = static_cast<int32_t>(best),
                        .max_probability = p[static_cast<size_t>(best)],
                        .predictive_entropy = entropy(row),
                        .mutual_information = all.mutual_information[static_cast<size_t>(row)]});
  }
  return examples;
}

std::vector<Scores> ScoreTable(const ScoredRows& rows, const ScoredRows* ood, int ece_bins) {
  std::vector<Scores> table;
  for (const SingleDraws& single : rows.Singles()) {
    Scores& scores = table.emplace_back(NamedScores("single " + ToString(single.kind), single.num_draws));
    scores.nll = -single.log_likelihood / single.weighted_rows;
    std::visit([&](const auto& targets) { ScoreSingles(single, targets, &scores); }, rows.targets());
  }
  for (size_t i = 0; i < rows.posteriors().size(); ++i) {
    table.push_back(ScorePosterior(rows.posteriors()[i], rows, ood ? &ood->posteriors()[i] : nullptr, ece_bins));
  }
  return table;
}

std::vector<Scores> CalibratedScores(const ScoredRows& rows, const ScoredRows& held_out, int ece_bins) {
  const int64_t classes = rows.num_classes();
  std::vector<Scores> table;
  for (size_t i = 0; i < rows.posteriors().size(); ++i) {
    const std::vector<double>& fitted = held_out.posteriors()[i].classes().mean_probability;
    const double temperature = FitTemperature(fitted, classes, held_out.labels());
    PosteriorRows scaled = rows.posteriors()[i];
    scaled.what = "calibrated " + scaled.what;
    ClassRows& average = std::get<ClassRows>(scaled.rows);
    average.mean_probability = ScaleTemperature(average.mean_probability, classes, temperature);
    for (size_t row = 0; row < average.predictive_entropy.size(); ++row) {
      const size_t width = static_cast<size_t>(classes);
      average.predictive_entropy[row] = Entropy({average.mean_probability.data() + row * width, width});
    }
    Scores& scores = table.emplace_back(ScorePosterior(scaled, rows, nullptr, ece_bins));
    scores.mean_mutual_information = kNone;
    scores.temperature = temperature;
  }
  return table;
}

}  // namespace chainfleet
