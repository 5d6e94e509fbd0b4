#include "server/predict/evaluation/score_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/scores/classification.h"
#include "server/predict/sums/member_sums.h"

namespace chainfleet {
namespace {

// The first draws of one chain and kind, summed in step order.
class RunningSum {
 public:
  explicit RunningSum(const PartialPrediction* partial)
      : partial_(partial), sum_wp_(partial->classes().sum_wp.size()) {}

  // Advances to the first `steps` draws, or to all. Never goes back.
  void AdvanceTo(int64_t steps) {
    if (steps >= partial_->num_draws) return Complete();
    for (; draws_ < steps; ++draws_) {
      const double w = partial_->members->weights[static_cast<size_t>(draws_)];
      const float* p = partial_->members->classes().probabilities.data() + static_cast<size_t>(draws_) * sum_wp_.size();
      for (size_t i = 0; i < sum_wp_.size(); ++i) sum_wp_[i] += w * static_cast<double>(p[i]);
      sum_w_ += w;
    }
  }
  void AddTo(std::vector<double>* sum_wp, double* sum_w) const {
    for (size_t i = 0; i < sum_wp_.size(); ++i) (*sum_wp)[i] += sum_wp_[i];
    *sum_w += sum_w_;
  }

 private:
  // Members are rounded to float32, but the worker's sums are not. Using the sums makes the last point equal the table.
  void Complete() {
    draws_ = partial_->num_draws;
    sum_wp_ = partial_->classes().sum_wp;
    sum_w_ = partial_->sum_w;
  }

  const PartialPrediction* const partial_;
  int64_t draws_ = 0;
  double sum_w_ = 0;
  std::vector<double> sum_wp_;  // [n, K]
};

void MergeBin(const ReliabilityBin& more, ReliabilityBin* bin) {
  const int64_t count = bin->count + more.count;
  if (count == 0) return;
  const auto pooled = [&](double a, double b) {
    return (a * static_cast<double>(bin->count) + b * static_cast<double>(more.count)) / static_cast<double>(count);
  };
  bin->mean_confidence = pooled(bin->mean_confidence, more.mean_confidence);
  bin->accuracy = pooled(bin->accuracy, more.accuracy);
  bin->count = count;
}

}  // namespace

std::vector<int64_t> CurveSteps(int64_t longest, int points) {
  std::vector<int64_t> steps;
  for (int i = 0; i + 1 < points; ++i) {
    const double share = static_cast<double>(i) / (points - 1);
    const auto s = static_cast<int64_t>(std::llround(std::exp(share * std::log(static_cast<double>(longest)))));
    if ((steps.empty() || s > steps.back()) && s < longest) steps.push_back(s);
  }
  steps.push_back(longest);
  return steps;
}

void ScoreCurve::Sums::Add(const Sums& more) {
  hits += more.hits;
  nll += more.nll;
  rows += more.rows;
  if (bins.empty()) {
    bins = more.bins;
    return;
  }
  for (size_t i = 0; i < bins.size(); ++i) MergeBin(more.bins[i], &bins[i]);
}

ScoreCurve::ScoreCurve(std::vector<int64_t> chain_steps, int points, int64_t num_classes,
                       std::span<const int32_t> labels, int ece_bins)
    : chain_steps_(std::move(chain_steps)),
      steps_(CurveSteps(std::ranges::max(chain_steps_), points)),
      num_classes_(num_classes),
      labels_(labels),
      ece_bins_(ece_bins),
      sums_(steps_.size()) {}

ScoreCurve::Sums ScoreCurve::Score(const RowBlock& rows, std::span<const double> mean_probability) const {
  const auto labels = labels_.subspan(static_cast<size_t>(rows.first_row), static_cast<size_t>(rows.num_rows));
  const auto classes = static_cast<size_t>(num_classes_);
  std::vector<double> confidence;
  std::vector<bool> correct;
  for (size_t row = 0; row < labels.size(); ++row) {
    const std::span<const double> p = mean_probability.subspan(row * classes, classes);
    const auto best = static_cast<size_t>(ArgMax(p));
    confidence.push_back(p[best]);
    correct.push_back(best == static_cast<size_t>(labels[row]));
  }
  const double count = static_cast<double>(rows.num_rows);
  return {.hits = static_cast<double>(std::ranges::count(correct, true)),
          .nll = count * NegativeLogLikelihood(mean_probability, num_classes_, labels),
          .rows = count,
          .bins = ReliabilityBins(confidence, correct, ece_bins_, Binning::kEqualWidth)};
}

void ScoreCurve::Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials) {
  std::vector<RunningSum> running;
  for (const PartialPrediction* partial : InOrder(PointersTo(partials))) running.emplace_back(partial);
  std::vector<Sums>& scored = early_[rows.first_row];
  for (const int64_t steps : steps_) {
    std::vector<double> mean(static_cast<size_t>(rows.num_rows * num_classes_));
    double weight = 0;
    for (RunningSum& sum : running) {
      sum.AdvanceTo(steps);
      sum.AddTo(&mean, &weight);
    }
    for (double& p : mean) p /= weight;
    scored.push_back(Score(rows, mean));
  }
  for (auto next = early_.begin(); next != early_.end() && next->first == next_row_; next = early_.erase(next)) {
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i].Add(next->second[i]);
    next_row_ += static_cast<int64_t>(next->second.front().rows);
  }
}

std::vector<CurvePoint> ScoreCurve::Points() const {
  std::vector<CurvePoint> points;
  for (size_t i = 0; i < steps_.size(); ++i) {
    int64_t draws = 0;
    for (const int64_t steps : chain_steps_) draws += std::min(steps, steps_[i]);
    const Sums& sums = sums_[i];
    points.push_back({draws, sums.hits / sums.rows, sums.nll / sums.rows, ExpectedCalibrationError(sums.bins)});
  }
  return points;
}

}  // namespace chainfleet
