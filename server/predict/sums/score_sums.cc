#include "server/predict/sums/score_sums.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/scores/classification.h"
#include "core/scores/entropy.h"

namespace chainfleet {
namespace {

void AddTo(std::vector<double>* sum, const std::vector<double>& more) {
  sum->resize(std::max(sum->size(), more.size()));
  for (size_t i = 0; i < more.size(); ++i) (*sum)[i] += more[i];
}

std::vector<double> Scaled(const std::vector<double>& sums, double w) {
  std::vector<double> means(sums.size());
  std::ranges::transform(sums, means.begin(), [w](double sum) { return sum / w; });
  return means;
}

ScoreSums ToAverage(const NumberSums& sums) {
  return {.first = sums.sum_wm, .second = sums.sum_wm2, .third = sums.sum_wv};
}

ScoreSums ToAverage(const ClassSums& sums) {
  return {.first = sums.sum_wp, .second = sums.sum_wh, .third = sums.votes};
}

ClassScores MakeScores(const ScoreSums& sums, const Classes& learned) {
  const auto classes = static_cast<size_t>(learned.count);
  ClassScores scores;
  scores.mean_probability = Scaled(sums.first, sums.w);
  scores.expected_entropy = Scaled(sums.second, sums.w);
  scores.log_probability.resize(scores.mean_probability.size());
  std::ranges::transform(scores.mean_probability, scores.log_probability.begin(), [](double p) { return std::log(p); });
  for (size_t row = 0; row < scores.expected_entropy.size(); ++row) {
    const std::span<const double> p(scores.mean_probability.data() + row * classes, classes);
    const std::span<const double> votes(sums.third.data() + row * classes, classes);
    scores.max_probability.push_back(p[static_cast<size_t>(ArgMax(p))]);
    scores.predictive_entropy.push_back(Entropy(p));
    scores.mutual_information.push_back(
        MutualInformation(scores.predictive_entropy[row], scores.expected_entropy[row]));
    scores.variation_ratio.push_back(std::max(1 - votes[static_cast<size_t>(ArgMax(votes))] / sums.w, 0.0));
  }
  return scores;
}

NumberScores MakeScores(const ScoreSums& sums, const Numbers&) {
  NumberScores scores;
  scores.mean = Scaled(sums.first, sums.w);
  scores.variance_epistemic = Scaled(sums.second, sums.w);
  scores.variance_aleatoric = Scaled(sums.third, sums.w);
  for (size_t i = 0; i < scores.variance_epistemic.size();
       ++i) {  // mean of m^2 - (mean of m)^2; below 0 only by rounding
    double& variance = scores.variance_epistemic[i];
    variance = std::max(variance - scores.mean[i] * scores.mean[i], 0.0);
  }
  return scores;
}

}  // namespace

void ScoreSums::Add(const ScoreSums& other) {
  w += other.w;
  AddTo(&first, other.first);
  AddTo(&second, other.second);
  AddTo(&third, other.third);
}

ScoreSums SumsOf(const PartialPrediction& partial) {
  ScoreSums sums = std::visit([](const auto& of) { return ToAverage(of); }, partial.sums);
  sums.num_draws = partial.num_draws;
  sums.w = partial.sum_w;
  return sums;
}

PredictiveScores ScoresOf(const ScoreSums& sums, const Targets& targets) {
  return std::visit([&](const auto& learned) { return PredictiveScores{MakeScores(sums, learned)}; }, targets);
}

}  // namespace chainfleet
