#include "server/predict/sums/mixture_quantiles.h"

#include <cstdint>
#include <map>
#include <numeric>
#include <span>

#include "core/scores/mixture.h"
#include "server/predict/sums/aggregator.h"
#include "server/predict/sums/batch_means.h"
#include "server/predict/sums/member_sums.h"

namespace chainfleet {
namespace {

// The draws of all partials, read for one row at a time.
struct RowMixture {
  explicit RowMixture(const std::vector<const PartialPrediction*>& partials) : ordered(OrderedMembers(partials)) {
    for (const Members* members : ordered) {
      weight.insert(weight.end(), members->weights.begin(), members->weights.end());
    }
    if (!weight.empty()) num_rows = static_cast<size_t>(partials.front()->num_rows);
    mean.resize(weight.size());
    variance.resize(weight.size());
  }

  void Read(size_t row) {
    size_t at = 0;
    for (const Members* members : ordered) {
      const NumberMembers& outputs = members->numbers();
      for (size_t i = row; i < outputs.mean.size(); i += num_rows, ++at) {
        mean[at] = outputs.mean[i];
        variance[at] = outputs.variance[i];
      }
    }
  }

  std::vector<const Members*> ordered;
  size_t num_rows = 0;  // 0 without draws
  std::vector<double> weight, mean, variance;
};

// Draws [first, first + sums.num_draws) of a RowMixture, with a sum of their own.
struct Stretch {
  PartialPrediction sums;
  size_t first = 0;

  size_t size() const { return static_cast<size_t>(sums.num_draws); }
};

Stretch StretchOf(const RowMixture& mixture, const ChainId& chain, DrawKind kind, size_t first, size_t size) {
  Stretch stretch{{.chain = chain, .kind = kind, .num_draws = static_cast<int64_t>(size)}, first};
  const std::span<const double> weight = std::span(mixture.weight).subspan(first, size);
  stretch.sums.sum_w = std::accumulate(weight.begin(), weight.end(), 0.0);
  return stretch;
}

std::vector<Stretch> WholeStretches(const RowMixture& mixture) {
  std::vector<Stretch> stretches;
  size_t first = 0;
  for (const Members* members : mixture.ordered) {
    stretches.push_back(StretchOf(mixture, members->chain, members->kind, first, members->weights.size()));
    first += members->weights.size();
  }
  return stretches;
}

// Parts come newest first, but the draws of a chain and kind oldest first. Empty if `parts` are not of one chain.
std::vector<Stretch> PartStretches(const RowMixture& mixture, const std::vector<PartialPrediction>& parts) {
  std::map<DrawKind, Stretch> left;
  for (Stretch& whole : WholeStretches(mixture)) left[whole.sums.kind] = std::move(whole);
  std::vector<Stretch> stretches;
  for (const PartialPrediction& part : parts) {
    if (part.num_draws == 0) continue;
    Stretch& older = left[part.kind];
    if (older.sums.num_draws < part.num_draws) return {};
    older.sums.num_draws -= part.num_draws;
    stretches.push_back(
        StretchOf(mixture, part.chain, part.kind, older.first + older.size(), static_cast<size_t>(part.num_draws)));
  }
  return stretches;
}

// Errors of the tail shares at the Q levels of one row, which take the place of rows here. Empty if unknown.
std::vector<double> MeanErrors(const std::vector<Stretch>& stretches, bool one_chain) {
  std::vector<PartialPrediction> sums;
  for (const Stretch& stretch : stretches) sums.push_back(stretch.sums);
  if (one_chain) return BatchMeansErrors(sums).numbers().mean;
  return Average(PointersTo(sums), /*with_errors=*/true).errors.numbers().mean;
}

}  // namespace

std::vector<double> MixtureQuantiles(const std::vector<const PartialPrediction*>& partials,
                                     const std::vector<double>& levels) {
  RowMixture mixture(partials);
  std::vector<double> quantiles;
  for (size_t row = 0; row < mixture.num_rows; ++row) {
    mixture.Read(row);
    for (const double level : levels) {
      quantiles.push_back(MixtureQuantile(mixture.weight, mixture.mean, mixture.variance, level));
    }
  }
  return quantiles;
}

// Row by row: the tail shares of all rows and chains at once would need many times the memory of the draws.
std::vector<double> MixtureQuantileErrors(const std::vector<const PartialPrediction*>& partials,
                                          const std::vector<PartialPrediction>& parts,
                                          const std::vector<double>& levels, const std::vector<double>& quantiles) {
  RowMixture mixture(partials);
  std::vector<Stretch> stretches = parts.empty() ? WholeStretches(mixture) : PartStretches(mixture, parts);
  double weight = 0;
  for (Stretch& stretch : stretches) {
    stretch.sums.num_rows = static_cast<int64_t>(levels.size());
    stretch.sums.numbers().sum_wm.resize(levels.size());
    weight += stretch.sums.sum_w;
  }
  std::vector<double> errors;
  for (size_t row = 0; row < mixture.num_rows; ++row) {
    mixture.Read(row);
    std::vector<double> density(levels.size());
    for (size_t q = 0; q < levels.size(); ++q) {
      for (Stretch& stretch : stretches) {
        const auto of = [&](const std::vector<double>& all) {
          return std::span(all).subspan(stretch.first, stretch.size());
        };
        const MixtureSums sums = MixtureSumsAt(of(mixture.weight), of(mixture.mean), of(mixture.variance),
                                               quantiles[row * levels.size() + q], /*upper=*/levels[q] > 0.5);
        stretch.sums.numbers().sum_wm[q] = sums.tail;
        density[q] += sums.density / weight;
      }
    }
    const std::vector<double> tail_errors = MeanErrors(stretches, !parts.empty());
    if (tail_errors.empty()) return {};
    for (size_t q = 0; q < levels.size(); ++q) errors.push_back(MixtureQuantileError(tail_errors[q], density[q]));
  }
  return errors;
}

}  // namespace chainfleet
