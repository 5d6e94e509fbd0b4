// Scores of predicted class probabilities against labels: one definition each (docs/explanation/sampling.md, "Scores").
//
// `probability` is row-major [n, K], each row a distribution; `labels` [n] in 0..K-1. All return 0 for n = 0, and NaN
// if what they read of a row is NaN: the whole row, or p(label) alone for the likelihood.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chainfleet {

// Share of rows whose largest class (the first of equals) is the label, 0..1.
double Accuracy(std::span<const double> probability, int64_t num_classes, std::span<const int32_t> labels);

// Mean of -log p(label), nats; a probability of 0 counts as the smallest normal double.
double NegativeLogLikelihood(std::span<const double> probability, int64_t num_classes, std::span<const int32_t> labels);

// Mean over rows of sum_k (p_k - [k is the label])^2, 0..2.
double BrierScore(std::span<const double> probability, int64_t num_classes, std::span<const int32_t> labels);

// Index of the largest of `row`, the first of equals; of the first NaN if there is one, as in NumPy, so that
// row[ArgMax(row)] is NaN then.
int64_t ArgMax(std::span<const double> row);

}  // namespace chainfleet
