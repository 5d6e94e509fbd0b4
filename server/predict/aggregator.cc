#include "server/predict/aggregator.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>

#include "core/scores/entropy.h"

namespace chainfleet {
namespace {

// Of labels: the sums of wp, wh and the votes. Of numbers: of wm, wm^2 and wv.
struct Sums {
  int64_t num_draws = 0;
  double w = 0;
  std::vector<double> first, second, third;

  void Add(const Sums& other, double sign) {
    w += sign * other.w;
    AddTo(other.first, sign, &first);
    AddTo(other.second, sign, &second);
    AddTo(other.third, sign, &third);
  }

  static void AddTo(const std::vector<double>& more, double sign, std::vector<double>* sum) {
    sum->resize(more.size());
    for (size_t i = 0; i < more.size(); ++i) (*sum)[i] += sign * more[i];
  }
};

Sums SumsOf(const PartialPrediction& partial) {
  const bool labels = partial.num_classes > 0;
  return {partial.num_draws, partial.sum_w, labels ? partial.sum_wp : partial.sum_wm,
          labels ? partial.sum_wh : partial.sum_wm2, labels ? partial.votes : partial.sum_wv};
}

// Per chain, in chain order; `partials` are sorted and have draws.
std::vector<Sums> SumByChain(const std::vector<const PartialPrediction*>& partials) {
  std::vector<Sums> chains;
  const PartialPrediction* previous = nullptr;
  for (const PartialPrediction* partial : partials) {
    Sums sums = SumsOf(*partial);
    if (previous == nullptr || previous->chain != partial->chain) {
      chains.push_back(std::move(sums));
    } else {
      chains.back().Add(sums, 1);
      chains.back().num_draws = std::min(chains.back().num_draws, partial->num_draws);
    }
    previous = partial;
  }
  return chains;
}

std::vector<double> Scaled(const std::vector<double>& sums, double w) {
  std::vector<double> means(sums.size());
  std::ranges::transform(sums, means.begin(), [w](double sum) { return sum / w; });
  return means;
}

PredictiveScores ClassScores(const Sums& sums, size_t classes) {
  PredictiveScores scores;
  scores.mean_probability = Scaled(sums.first, sums.w);
  scores.expected_entropy = Scaled(sums.second, sums.w);
  scores.log_probability.resize(scores.mean_probability.size());
  std::ranges::transform(scores.mean_probability, scores.log_probability.begin(), [](double p) { return std::log(p); });
  for (size_t row = 0; row < scores.expected_entropy.size(); ++row) {
    const std::span<const double> p(scores.mean_probability.data() + row * classes, classes);
    const std::span<const double> votes(sums.third.data() + row * classes, classes);
    scores.max_probability.push_back(std::ranges::max(p));
    scores.predictive_entropy.push_back(Entropy(p));
    scores.mutual_information.push_back(
        MutualInformation(scores.predictive_entropy[row], scores.expected_entropy[row]));
    scores.variation_ratio.push_back(std::max(1 - std::ranges::max(votes) / sums.w, 0.0));
  }
  return scores;
}

PredictiveScores NumberScores(const Sums& sums) {
  PredictiveScores scores;
  scores.mean = Scaled(sums.first, sums.w);
  scores.variance_epistemic = Scaled(sums.second, sums.w);
  scores.variance_aleatoric = Scaled(sums.third, sums.w);
  for (size_t i = 0; i < scores.mean.size(); ++i) {  // mean of m^2 - (mean of m)^2; below 0 only by rounding
    double& variance = scores.variance_epistemic[i];
    variance = std::max(variance - scores.mean[i] * scores.mean[i], 0.0);
  }
  return scores;
}

PredictiveScores ScoresOf(const Sums& sums, int64_t classes) {
  return classes > 0 ? ClassScores(sums, static_cast<size_t>(classes)) : NumberScores(sums);
}

// Deviations of the leave-one-chain-out values from the value of all chains, which they are close to.
struct Deviations {
  std::vector<double> sum, squares;

  void Add(const std::vector<double>& values, const std::vector<double>& of_all) {
    sum.resize(of_all.size());
    squares.resize(of_all.size());
    for (size_t i = 0; i < of_all.size(); ++i) {
      const double deviation = values[i] == of_all[i] ? 0 : values[i] - of_all[i];  // both may be -inf
      sum[i] += deviation;
      squares[i] += deviation * deviation;
    }
  }

  std::vector<double> JackknifeError(double chains) const {
    std::vector<double> error(sum.size());
    for (size_t i = 0; i < sum.size(); ++i) {
      const double spread = std::max(squares[i] - sum[i] * sum[i] / chains, 0.0);
      error[i] = std::sqrt((chains - 1) / chains * spread);
    }
    return error;
  }
};

PredictiveScores JackknifeErrors(const std::vector<Sums>& chains, const Sums& total, const PredictiveScores& of_all,
                                 int64_t classes) {
  const std::vector<ScoreField> fields = ScoresOfTarget(classes);
  std::vector<Deviations> deviations(fields.size());
  for (const Sums& chain : chains) {
    Sums others = total;
    others.Add(chain, -1);
    const PredictiveScores without = ScoresOf(others, classes);
    for (size_t f = 0; f < fields.size(); ++f) deviations[f].Add(without.*fields[f].values, of_all.*fields[f].values);
  }
  PredictiveScores errors;
  for (size_t f = 0; f < fields.size(); ++f) {
    errors.*fields[f].values = deviations[f].JackknifeError(static_cast<double>(chains.size()));
  }
  return errors;
}

}  // namespace

Prediction Average(std::vector<const PartialPrediction*> partials, bool with_errors) {
  std::erase_if(partials, [](const PartialPrediction* p) { return p->num_draws == 0; });
  if (partials.empty()) return {};
  std::ranges::sort(partials, {}, [](const PartialPrediction* p) { return std::tie(p->chain, p->kind); });
  const std::vector<Sums> chains = SumByChain(partials);
  Sums total;
  for (const Sums& chain : chains) {
    total.num_draws += chain.num_draws;
    total.Add(chain, 1);
  }
  Prediction average;
  average.draws_used = total.num_draws;
  average.num_rows = partials.front()->num_rows;
  average.num_classes = partials.front()->num_classes;
  average.scores = ScoresOf(total, average.num_classes);
  if (with_errors && chains.size() > 1) {
    average.errors = JackknifeErrors(chains, total, average.scores, average.num_classes);
  }
  return average;
}

}  // namespace chainfleet
