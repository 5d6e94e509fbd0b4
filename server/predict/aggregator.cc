#include "server/predict/aggregator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <tuple>
#include <utility>

#include "core/scores/entropy.h"

namespace chainfleet {
namespace {

// first: what the Monte Carlo error is of, wp or wm; second: wh or wm2; third: wv.
struct Sums {
  int64_t num_draws = 0;
  double w = 0;
  std::vector<double> first, second, third;

  void Add(double more_w, const std::vector<double>& more_first, const std::vector<double>& more_second,
           const std::vector<double>& more_third) {
    w += more_w;
    AddTo(more_first, &first);
    AddTo(more_second, &second);
    AddTo(more_third, &third);
  }

  static void AddTo(const std::vector<double>& more, std::vector<double>* sum) {
    sum->resize(more.size());
    std::ranges::transform(*sum, more, sum->begin(), std::plus<>());
  }
};

// Per chain, in chain order; `partials` are sorted and have draws.
std::vector<Sums> SumByChain(const std::vector<const PartialPrediction*>& partials) {
  std::vector<Sums> chains;
  const PartialPrediction* previous = nullptr;
  for (const PartialPrediction* partial : partials) {
    if (previous == nullptr || previous->chain != partial->chain) {
      chains.emplace_back().num_draws = partial->num_draws;
    }
    previous = partial;
    chains.back().num_draws = std::min(chains.back().num_draws, partial->num_draws);
    if (partial->num_classes > 0) {
      chains.back().Add(partial->sum_w, partial->sum_wp, partial->sum_wh, {});
    } else {
      chains.back().Add(partial->sum_w, partial->sum_wm, partial->sum_wm2, partial->sum_wv);
    }
  }
  return chains;
}

// Jackknife standard error of sum_c first_c / sum_c w_c, element by element.
std::vector<double> JackknifeError(const std::vector<Sums>& chains, const Sums& total) {
  const double count = static_cast<double>(chains.size());
  if (chains.size() < 2) return {};
  std::vector<double> error(total.first.size());
  std::vector<double> without(chains.size());
  for (size_t i = 0; i < error.size(); ++i) {
    double mean = 0, squares = 0;
    for (size_t c = 0; c < chains.size(); ++c) {
      without[c] = (total.first[i] - chains[c].first[i]) / (total.w - chains[c].w);
      mean += without[c] / count;
    }
    for (const double value : without) squares += (value - mean) * (value - mean);
    error[i] = std::sqrt((count - 1) / count * squares);
  }
  return error;
}

void AddEntropies(Prediction* average) {
  const size_t classes = static_cast<size_t>(average->num_classes);
  for (size_t row = 0; row < average->expected_entropy.size(); ++row) {
    const std::span<const double> p(average->mean_probability.data() + row * classes, classes);
    average->predictive_entropy.push_back(Entropy(p));
    average->mutual_information.push_back(
        MutualInformation(average->predictive_entropy[row], average->expected_entropy[row]));
  }
}

// mean of m^2 - (mean of m)^2; below 0 only by rounding.
std::vector<double> VarianceOfMeans(const std::vector<double>& mean, const std::vector<double>& mean_square) {
  std::vector<double> variance;
  for (size_t i = 0; i < mean.size(); ++i) variance.push_back(std::max(mean_square[i] - mean[i] * mean[i], 0.0));
  return variance;
}

void Append(const std::vector<double>& from, std::vector<double>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

}  // namespace

Prediction Average(std::vector<const PartialPrediction*> partials) {
  std::erase_if(partials, [](const PartialPrediction* p) { return p->num_draws == 0; });
  if (partials.empty()) return {};
  std::ranges::sort(partials, {}, [](const PartialPrediction* p) { return std::tie(p->chain, p->kind); });
  const std::vector<Sums> chains = SumByChain(partials);
  Sums total;
  for (const Sums& chain : chains) {
    total.num_draws += chain.num_draws;
    total.Add(chain.w, chain.first, chain.second, chain.third);
  }
  Prediction average;
  average.draws_used = total.num_draws;
  average.num_rows = partials.front()->num_rows;
  average.num_classes = partials.front()->num_classes;
  average.monte_carlo_error = JackknifeError(chains, total);
  for (auto* sums : {&total.first, &total.second, &total.third}) {
    for (double& sum : *sums) sum /= total.w;
  }
  if (average.num_classes > 0) {
    average.mean_probability = std::move(total.first);
    average.expected_entropy = std::move(total.second);
    AddEntropies(&average);
  } else {
    average.variance_epistemic = VarianceOfMeans(total.first, total.second);
    average.mean = std::move(total.first);
    average.variance_aleatoric = std::move(total.third);
  }
  return average;
}

void AppendRows(Prediction block, Prediction* whole) {
  if (whole->num_rows == 0) {
    *whole = std::move(block);
    return;
  }
  whole->draws_used = std::min(whole->draws_used, block.draws_used);
  if (block.monte_carlo_error.empty()) whole->monte_carlo_error.clear();
  if (!whole->monte_carlo_error.empty()) Append(block.monte_carlo_error, &whole->monte_carlo_error);
  whole->num_rows += block.num_rows;
  Append(block.mean_probability, &whole->mean_probability);
  Append(block.predictive_entropy, &whole->predictive_entropy);
  Append(block.expected_entropy, &whole->expected_entropy);
  Append(block.mutual_information, &whole->mutual_information);
  Append(block.mean, &whole->mean);
  Append(block.variance_aleatoric, &whole->variance_aleatoric);
  Append(block.variance_epistemic, &whole->variance_epistemic);
}

}  // namespace chainfleet
