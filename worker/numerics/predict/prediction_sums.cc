#include "worker/numerics/predict/prediction_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/scores/regression.h"
#include "worker/numerics/likelihoods/scalar_losses.h"

namespace chainfleet {
namespace {

// Adds the probabilities p[K] of one row under one draw; returns the most probable class (the first if equal). The
// probabilities of a row are kLanes apart.
int64_t AddImage(const float* p, double w, int64_t row, ClassSums* sums) {
  const int64_t classes = sums->num_classes;
  int64_t best = 0;
  double entropy = 0;
  for (int64_t k = 0; k < classes; ++k) {
    const double pk = p[k * kLanes];
    if (pk > p[best * kLanes]) best = k;
    if (pk != 0) entropy -= pk * std::log(pk);  // NaN stays NaN
    sums->sum_wp[row * classes + k] += w * pk;
    sums->sum_wp2[row * classes + k] += w * pk * pk;
  }
  sums->sum_wh[row] += w * entropy;
  sums->votes[row * classes + best] += w;
  return best;
}

// Fills the arrays of `rows` with 0.
template <typename T>
void Size(int64_t rows, int64_t classes, T* arrays) {
  for (const auto& array : T::kArrays) (arrays->*array.values).assign(rows * (array.per_class ? classes : 1), 0);
}

// Adds rows [row, row + count) of `run` to those of `sums` and sets them to 0.
void MoveRows(int64_t row, int64_t count, int64_t num_rows, std::vector<double>* run, std::vector<double>* sums) {
  const int64_t width = static_cast<int64_t>(run->size()) / num_rows;
  for (int64_t i = row * width; i < (row + count) * width; ++i) {
    (*sums)[i] += (*run)[i];
    (*run)[i] = 0;
  }
}

}  // namespace

PredictionSums::PredictionSums(const Likelihood* likelihood, const std::vector<double>& weights, bool scores,
                               bool members, PartialPrediction* sums)
    : likelihood_(likelihood),
      weights_(weights),
      scores_(scores),
      sums_(sums),
      scratch_size_((likelihood->num_outputs() + likelihood->num_classes()) * kLanes) {
  const int64_t n = sums->num_rows;
  sums->num_draws = static_cast<int64_t>(weights.size());
  places_.resize(weights.size());
  Nest(0, sums->num_draws, 0);
  SumWeights();
  if (members) SizeMembers(sums->num_draws);
  std::visit([&](auto& of) { Size(n, likelihood->num_classes(), &of); }, sums->sums);
  for (PartialPrediction& run : runs_) run.sums = sums->sums;
  if (!scores) return;
  log_likelihood_.resize(sums->num_draws * n);
  if (auto* const numbers = std::get_if<NumberSums>(&sums->sums)) {
    numbers->log_sum_wd.assign(n, -std::numeric_limits<double>::infinity());
    numbers->sum_wc.assign(n, 0);
  } else {
    hit_.resize(sums->num_draws * n);
  }
}

void PredictionSums::Nest(int64_t newest, int64_t count, int level) {
  runs_.resize(std::max(runs_.size(), static_cast<size_t>(level)));
  for (int64_t done = 0, run = 1; done < count; done += run, run *= 2) {
    run = std::min(run, count - done);
    const int64_t first = newest + done;
    if (run == 1) {
      places_[first].level = level;
    } else {
      Nest(first, run, level + 1);
      ++places_[first + run - 1].ends;
    }
  }
}

void PredictionSums::SumWeights() {
  for (int64_t s = sums_->num_draws - 1; s >= 0; --s) {
    const auto [level, ends] = PlaceOf(s);
    Level(level)->sum_w += weights_[s];
    Level(level)->sum_w2 += weights_[s] * weights_[s];
    for (int from = level; from > level - ends; --from) {
      Level(from - 1)->sum_w += std::exchange(Level(from)->sum_w, 0);
      Level(from - 1)->sum_w2 += std::exchange(Level(from)->sum_w2, 0);
    }
  }
}

void PredictionSums::SizeMembers(int64_t draws) {
  Members& members = sums_->members.emplace();
  members.chain = sums_->chain;
  members.kind = sums_->kind;
  members.weights = weights_;
  members.outputs = EmptyOf<Members::Outputs>(sums_->targets());
  std::visit([&](auto& of) { Size(draws * sums_->num_rows, likelihood_->num_classes(), &of); }, members.outputs);
}

void PredictionSums::EndDraw(int64_t row, int64_t count, int64_t s) {
  const auto [level, ends] = PlaceOf(s);
  for (int from = level; from > level - ends; --from) {
    const auto move = [&]<typename Sums>(Sums& run) {
      Sums& sums = std::get<Sums>(Level(from - 1)->sums);
      for (const auto& array : Sums::kArrays) {
        MoveRows(row, count, sums_->num_rows, &(run.*array.values), &(sums.*array.values));
      }
    };
    std::visit(move, Level(from)->sums);
  }
}

void PredictionSums::Add(const LaneExamples& examples, int64_t row, int64_t s, float* scratch) {
  const double w = weights_[s];
  if (std::holds_alternative<ClassSums>(sums_->sums)) {
    if (scores_) {
      LaneLosses losses;
      likelihood_->Evaluate(examples, 1, scratch, &losses);
      for (int64_t l = 0; l < examples.count; ++l) log_likelihood_[s * sums_->num_rows + row + l] = -losses.loss[l];
    }
    AddClasses(examples, row, s, w, scratch + likelihood_->num_outputs() * kLanes);
  } else {
    AddNumbers(examples, row, s, w);
  }
}

void PredictionSums::AddClasses(const LaneExamples& examples, int64_t row, int64_t s, double w, float* scratch) {
  likelihood_->Probabilities(examples.outputs, scratch);
  ClassSums* const run = &Level(PlaceOf(s).level)->classes();
  for (int64_t l = 0; l < examples.count; ++l) {
    const int64_t best = AddImage(scratch + l, w, row + l, run);
    if (sums_->members) KeepImage(scratch + l, s * sums_->num_rows + row + l);
    if (scores_) hit_[s * sums_->num_rows + row + l] = static_cast<float>(best) == examples.targets[l];
  }
}

void PredictionSums::KeepImage(const float* p, int64_t at) {
  const int64_t classes = sums_->classes().num_classes;
  float* const kept = std::get<ClassMembers>(sums_->members->outputs).probabilities.data() + at * classes;
  for (int64_t k = 0; k < classes; ++k) kept[k] = p[k * kLanes];
}

void PredictionSums::AddNumbers(const LaneExamples& examples, int64_t row, int64_t s, double w) {
  double mean[kLanes], variance[kLanes];
  likelihood_->Moments(examples.outputs, examples.log_variance, mean, variance);
  NumberSums* const run = &Level(PlaceOf(s).level)->numbers();
  NumberSums* const all = &sums_->numbers();
  NumberMembers* const members = sums_->members ? std::get_if<NumberMembers>(&sums_->members->outputs) : nullptr;
  for (int64_t l = 0; l < examples.count; ++l) {
    const int64_t i = row + l;
    run->sum_wm[i] += w * mean[l];
    run->sum_wm2[i] += w * mean[l] * mean[l];
    run->sum_wv[i] += w * variance[l];
    if (members != nullptr) {
      members->mean[s * sums_->num_rows + i] = static_cast<float>(mean[l]);
      members->variance[s * sums_->num_rows + i] = static_cast<float>(variance[l]);
    }
    if (!scores_) continue;
    double slope;
    const double log_likelihood = -NormalLoss{variance[l]}.Loss(mean[l], examples.targets[l], &slope);
    log_likelihood_[s * sums_->num_rows + i] = log_likelihood;
    all->log_sum_wd[i] = LogAddExp(all->log_sum_wd[i], std::log(w) + log_likelihood);
    all->sum_wc[i] += w * NormalDistribution(examples.targets[l], mean[l], variance[l]);
  }
}

void PredictionSums::Finish() {
  if (!scores_) return;
  const int64_t n = sums_->num_rows;
  for (int64_t s = 0; s < sums_->num_draws; ++s) {
    const auto log_likelihood = log_likelihood_.begin() + s * n;
    sums_->draw_weights.push_back(weights_[s]);
    sums_->draw_log_likelihood.push_back(std::accumulate(log_likelihood, log_likelihood + n, 0.0));
    if (hit_.empty()) continue;
    sums_->classes().draw_hits.push_back(std::accumulate(hit_.begin() + s * n, hit_.begin() + (s + 1) * n, int64_t{0}));
  }
}

}  // namespace chainfleet
