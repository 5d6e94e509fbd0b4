#include "worker/numerics/prediction_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/scores/regression.h"

namespace chainfleet {
namespace {

// Adds the probabilities p[K] of one row under one draw; its largest class (the first of equals). Those of a row are
// kLanes apart.
int64_t AddImage(const float* p, double w, int64_t row, PartialPrediction* sums) {
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

}  // namespace

PredictionSums::PredictionSums(const Likelihood* likelihood, bool scores, PartialPrediction* sums)
    : likelihood_(likelihood),
      scores_(scores),
      sums_(sums),
      scratch_size_((likelihood->num_outputs() + likelihood->num_classes()) * kLanes) {
  const int64_t n = sums->num_rows, classes = sums->num_classes;
  if (classes > 0) {
    sums->sum_wp.assign(n * classes, 0);
    sums->sum_wp2.assign(n * classes, 0);
    sums->sum_wh.assign(n, 0);
    sums->votes.assign(n * classes, 0);
  } else {
    for (auto* sum : {&sums->sum_wm, &sums->sum_wm2, &sums->sum_wv}) sum->assign(n, 0);
  }
  if (!scores) return;
  log_likelihood_.resize(sums->num_draws * n);
  if (classes > 0) {
    hit_.resize(sums->num_draws * n);
  } else {
    sums->log_sum_wd.assign(n, -std::numeric_limits<double>::infinity());
    sums->sum_wc.assign(n, 0);
  }
}

void PredictionSums::Add(const LaneExamples& examples, int64_t row, int64_t s, double w, float* scratch) {
  if (scores_) {
    LaneLosses losses;
    likelihood_->Evaluate(examples, 1, scratch, &losses);
    for (int64_t l = 0; l < examples.count; ++l) log_likelihood_[s * sums_->num_rows + row + l] = -losses.loss[l];
  }
  if (likelihood_->num_classes() > 0) {
    AddClasses(examples, row, s, w, scratch + likelihood_->num_outputs() * kLanes);
  } else {
    AddNumbers(examples, row, s, w);
  }
}

void PredictionSums::AddClasses(const LaneExamples& examples, int64_t row, int64_t s, double w, float* scratch) {
  likelihood_->Probabilities(examples.outputs, scratch);
  for (int64_t l = 0; l < examples.count; ++l) {
    const int64_t best = AddImage(scratch + l, w, row + l, sums_);
    if (scores_) hit_[s * sums_->num_rows + row + l] = static_cast<float>(best) == examples.targets[l];
  }
}

void PredictionSums::AddNumbers(const LaneExamples& examples, int64_t row, int64_t s, double w) {
  double mean[kLanes], variance[kLanes];
  likelihood_->Moments(examples.outputs, examples.log_variance, mean, variance);
  for (int64_t l = 0; l < examples.count; ++l) {
    const int64_t i = row + l;
    sums_->sum_wm[i] += w * mean[l];
    sums_->sum_wm2[i] += w * mean[l] * mean[l];
    sums_->sum_wv[i] += w * variance[l];
    if (!scores_) continue;
    sums_->log_sum_wd[i] = LogAddExp(sums_->log_sum_wd[i], std::log(w) + log_likelihood_[s * sums_->num_rows + i]);
    sums_->sum_wc[i] += w * NormalDistribution(examples.targets[l], mean[l], variance[l]);
  }
}

void PredictionSums::Finish() {
  if (!scores_) return;
  const int64_t n = sums_->num_rows;
  for (int64_t s = 0; s < sums_->num_draws; ++s) {
    const auto log_likelihood = log_likelihood_.begin() + s * n;
    sums_->draw_log_likelihood.push_back(std::accumulate(log_likelihood, log_likelihood + n, 0.0));
    if (hit_.empty()) continue;
    sums_->draw_hits.push_back(std::accumulate(hit_.begin() + s * n, hit_.begin() + (s + 1) * n, int64_t{0}));
  }
}

}  // namespace chainfleet
