#include "server/predict/evaluation/conformal_rows.h"

#include <algorithm>
#include <variant>

#include "core/scores/conformal.h"

namespace chainfleet {
namespace {

std::vector<double> ScoresOf(const ClassRows& average, const std::vector<int32_t>& labels) {
  std::vector<double> scores;
  const size_t classes = average.mean_probability.size() / std::max<size_t>(labels.size(), 1);
  for (size_t row = 0; row < labels.size(); ++row) {
    scores.push_back(ConformalScoreOf(average.mean_probability[row * classes + static_cast<size_t>(labels[row])]));
  }
  return scores;
}

std::vector<double> ScoresOf(const NumberRows& average, const std::vector<float>& targets) {
  std::vector<double> scores;
  for (size_t row = 0; row < targets.size(); ++row) {
    scores.push_back(ConformalScoreOf(targets[row], average.mean[row], average.variance[row]));
  }
  return scores;
}

std::vector<double> ScoresOf(const ScoredRows& rows) {
  const auto& all = rows.posteriors().back().rows;
  if (const auto* numbers = std::get_if<NumberRows>(&all)) {
    return ScoresOf(*numbers, std::get<std::vector<float>>(rows.targets()));
  }
  return ScoresOf(std::get<ClassRows>(all), rows.labels());
}

// The classes of all sets together, or the width of all intervals.
double TotalSize(const ClassRows& average, double threshold) {
  return static_cast<double>(std::ranges::count_if(
      average.mean_probability, [&](double probability) { return ConformalScoreOf(probability) <= threshold; }));
}

double TotalSize(const NumberRows& average, double threshold) {
  double size = 0;
  for (const double variance : average.variance) size += 2 * ConformalHalfWidth(threshold, variance);
  return size;
}

}  // namespace

std::vector<double> ConformalThresholdsOf(const ScoredRows& held_out) {
  return ConformalThresholds(ScoresOf(held_out));
}

std::vector<ConformalScore> ScoreConformal(const ScoredRows& rows, const std::vector<double>& thresholds) {
  const std::vector<double> scores = ScoresOf(rows);
  const auto num_rows = static_cast<double>(scores.size());
  std::vector<ConformalScore> table;
  for (const double level : {0.5, 0.8, 0.9, 0.95, 0.99}) {
    const double threshold = ConformalThreshold(thresholds, level);
    const auto covered = std::ranges::count_if(scores, [&](double score) { return score <= threshold; });
    const double size =
        std::visit([&](const auto& average) { return TotalSize(average, threshold); }, rows.posteriors().back().rows);
    table.push_back({level, threshold, static_cast<double>(covered) / num_rows, size / num_rows});
  }
  return table;
}

}  // namespace chainfleet
