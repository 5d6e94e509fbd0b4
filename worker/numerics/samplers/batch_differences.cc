#include "worker/numerics/samplers/batch_differences.h"

#include <cmath>

#include "worker/numerics/samplers/full_data.h"

namespace chainfleet {
namespace {

double MeanOf(const double* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

// Sample skewness and kurtosis with the factors that make them unbiased under a normal law (Joanes & Gill, "Comparing
// measures of sample skewness and kurtosis", 1998: G1, G2).
void DescribeShape(const double* values, int64_t count, BatchDifferences* shape) {
  const double mean = MeanOf(values, count), m = static_cast<double>(count);
  double sum2 = 0, sum3 = 0, sum4 = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double gap = values[i] - mean, square = gap * gap;
    sum2 += square;
    sum3 += square * gap;
    sum4 += square * square;
  }
  if (!(sum2 > 0)) return;
  const double variance = sum2 / m;
  if (count > 2) shape->skew = sum3 / m / std::pow(variance, 1.5) * std::sqrt(m * (m - 1)) / (m - 2);
  if (count > 3) {
    const double excess = sum4 / m / (variance * variance) - 3;
    shape->kurtosis = 3 + (m - 1) / ((m - 2) * (m - 3)) * ((m + 1) * excess + 6);
  }
}

}  // namespace

std::vector<BatchDifferences> CompareOnBatches(const StepInputs& inputs, const ThetaArena& from, const ThetaArena& to,
                                               int64_t num_batches, double likelihood_weight) {
  const int64_t rows = from.rows(), n = inputs.batches->batch_size(), count = num_batches * n;
  const auto all = static_cast<double>(inputs.potential->num_examples()), m = static_cast<double>(num_batches);
  const double scale = likelihood_weight * all / static_cast<double>(n);
  std::vector<int64_t> ids(rows * count);
  for (int64_t row = 0; row < rows; ++row) {
    inputs.batches->FillDisjoint(inputs.chains[row].key, inputs.chains[row].t, RngStream::kAccept, count,
                                 &ids[row * count]);
  }
  const std::vector<EnergyChange> prior = PriorChange(inputs, from, to);
  std::vector<double> of_batch(rows * num_batches), loss(rows);
  CompareLosses(inputs, from, to, ids.data(), count,
                [&](int64_t row, int64_t first, int64_t size, const double* at_from, const double* at_to) {
                  for (int64_t i = 0; i < size; ++i) {
                    of_batch[row * num_batches + (first + i) / n] += scale * (at_to[i] - at_from[i]);
                    loss[row] += at_from[i];
                  }
                });
  std::vector<BatchDifferences> differences(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const double *d = &of_batch[row * num_batches], mean = MeanOf(d, num_batches);
    BatchDifferences& of_row = differences[row];
    of_row.energy = prior[row].energy + scale * loss[row] / m;
    of_row.difference = prior[row].change + mean;
    for (int64_t j = 0; j < num_batches; ++j) of_row.variance += (d[j] - mean) * (d[j] - mean);
    of_row.variance *= num_batches == 1 ? 0 : (1 - static_cast<double>(count) / all) / (m * (m - 1));
    DescribeShape(d, num_batches, &of_row);
  }
  return differences;
}

}  // namespace chainfleet
