// Scores class probabilities against labels, with one definition each (docs/explanation/sampling.md, "Scores").
//
// `probability` is row-major [n, K], each row a distribution; `labels` [n] in 0..K-1. All functions return 0 for n = 0,
// and NaN if a value that they read is NaN: the whole row, or only p(label) for the likelihood.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chainfleet {

// Returns log p in nats; a probability of 0 counts as the smallest normal double.
double LogProbability(double p);

// Returns the share of rows whose largest class (the first of equals) is the label, 0..1.
double Accuracy(std::span<const double> probability, int64_t num_classes, std::span<const int32_t> labels);

// Returns the mean of -LogProbability(p(label)), nats.
double NegativeLogLikelihood(std::span<const double> probability, int64_t num_classes, std::span<const int32_t> labels);

// Returns the mean over rows of sum_k (p_k - [k is the label])^2, 0..2.
double BrierScore(std::span<const double> probability, int64_t num_classes, std::span<const int32_t> labels);

// Returns the index of the largest value, the first of equals. As in NumPy, returns the index of the first NaN if there
// is one, so that row[ArgMax(row)] is NaN then.
int64_t ArgMax(std::span<const double> row);

}  // namespace chainfleet
