#include "server/predict/sums/aggregator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/predict/sums/member_sums.h"
#include "server/predict/sums/score_sums.h"

namespace chainfleet {
namespace {

// Sums per chain, in chain order. REQUIRES: `partials` are sorted and have draws.
std::vector<ScoreSums> SumByChain(const std::vector<const PartialPrediction*>& partials) {
  std::vector<ScoreSums> chains;
  const PartialPrediction* previous = nullptr;
  for (const PartialPrediction* partial : partials) {
    ScoreSums sums = SumsOf(*partial);
    if (previous == nullptr || previous->chain != partial->chain) {
      chains.push_back(std::move(sums));
    } else {
      chains.back().Add(sums);
      chains.back().num_draws = std::min(chains.back().num_draws, partial->num_draws);
    }
    previous = partial;
  }
  return chains;
}

// Deviations of the leave-one-chain-out values from the value over all chains. The two are close.
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

template <typename Scores>
PredictiveScores JackknifeErrors(const std::vector<ScoreSums>& chains, const Scores& of_all, const Targets& targets) {
  std::vector<Deviations> deviations(std::size(Scores::kArrays));
  // Leave-one-out sums are added up from both sides: subtraction from the total would leave rounding errors.
  std::vector<ScoreSums> after(chains.size());
  for (size_t c = chains.size() - 1; c > 0; --c) {
    after[c - 1] = chains[c];
    after[c - 1].Add(after[c]);
  }
  ScoreSums before;
  for (size_t c = 0; c < chains.size(); ++c) {
    ScoreSums others = std::move(after[c]);
    others.Add(before);
    before.Add(chains[c]);
    const PredictiveScores scores = ScoresOf(others, targets);
    const auto& without = std::get<Scores>(scores.of);
    for (size_t f = 0; f < deviations.size(); ++f) {
      const auto values = Scores::kArrays[f].values;
      deviations[f].Add(without.*values, of_all.*values);
    }
  }
  Scores errors;
  for (size_t f = 0; f < deviations.size(); ++f) {
    errors.*Scores::kArrays[f].values = deviations[f].JackknifeError(static_cast<double>(chains.size()));
  }
  return {std::move(errors)};
}

std::vector<double> MeanGradient(const std::vector<const PartialPrediction*>& partials, double sum_w) {
  std::vector<double> mean(partials.front()->sum_wg.size());
  for (const PartialPrediction* partial : partials) {
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += partial->sum_wg[i] / sum_w;
  }
  return mean;
}

}  // namespace

Prediction Average(std::vector<const PartialPrediction*> partials, bool with_errors) {
  Prediction average;
  if (!partials.empty()) average.targets = partials.front()->targets();
  average.scores.of = EmptyOf<decltype(average.scores.of)>(average.targets);
  partials = InOrder(std::move(partials));
  if (partials.empty()) return average;
  const std::vector<ScoreSums> chains = SumByChain(partials);
  ScoreSums total;
  for (const ScoreSums& chain : chains) {
    total.num_draws += chain.num_draws;
    total.Add(chain);
  }
  average.draws_used = total.num_draws;
  average.num_rows = partials.front()->num_rows;
  average.scores = ScoresOf(total, average.targets);
  average.mean_gradient = MeanGradient(partials, total.w);
  if (with_errors && chains.size() > 1) {
    const auto errors = [&](const auto& scores) { return JackknifeErrors(chains, scores, average.targets); };
    average.errors = std::visit(errors, average.scores.of);
  }
  return average;
}

}  // namespace chainfleet
