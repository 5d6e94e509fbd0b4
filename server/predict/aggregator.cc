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

struct Sums {
  int64_t num_draws = 0;
  double w = 0;
  std::vector<double> wp, wh;

  void Add(double more_w, const std::vector<double>& more_wp, const std::vector<double>& more_wh) {
    wp.resize(more_wp.size());
    wh.resize(more_wh.size());
    w += more_w;
    std::ranges::transform(wp, more_wp, wp.begin(), std::plus<>());
    std::ranges::transform(wh, more_wh, wh.begin(), std::plus<>());
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
    chains.back().Add(partial->sum_w, partial->sum_wp, partial->sum_wh);
  }
  return chains;
}

// Jackknife standard error of sum_c wp_c / sum_c w_c, element by element.
std::vector<double> JackknifeError(const std::vector<Sums>& chains, const Sums& total) {
  const double count = static_cast<double>(chains.size());
  if (chains.size() < 2) return {};
  std::vector<double> error(total.wp.size());
  std::vector<double> without(chains.size());
  for (size_t i = 0; i < error.size(); ++i) {
    double mean = 0, squares = 0;
    for (size_t c = 0; c < chains.size(); ++c) {
      without[c] = (total.wp[i] - chains[c].wp[i]) / (total.w - chains[c].w);
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
    total.Add(chain.w, chain.wp, chain.wh);
  }
  Prediction average;
  average.draws_used = total.num_draws;
  average.num_rows = partials.front()->num_rows;
  average.num_classes = partials.front()->num_classes;
  average.monte_carlo_error = JackknifeError(chains, total);
  for (double& p : total.wp) p /= total.w;
  for (double& h : total.wh) h /= total.w;
  average.mean_probability = std::move(total.wp);
  average.expected_entropy = std::move(total.wh);
  AddEntropies(&average);
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
}

}  // namespace chainfleet
