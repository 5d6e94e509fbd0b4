#include "core/scores/ranking.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace chainfleet {
namespace {

bool HasNaN(std::span<const double> scores) {
  return std::ranges::any_of(scores, [](double score) { return std::isnan(score); });
}

// Calls visit(positives, negatives) for each distinct score, from the highest. REQUIRES: no score is NaN.
template <typename Visit>
void ForEachThreshold(std::span<const double> positive, std::span<const double> negative, Visit visit) {
  std::vector<std::pair<double, bool>> scores;
  scores.reserve(positive.size() + negative.size());
  for (const double s : positive) scores.emplace_back(s, true);
  for (const double s : negative) scores.emplace_back(s, false);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  for (size_t begin = 0; begin < scores.size();) {
    size_t end = begin, positives = 0;
    for (; end < scores.size() && scores[end].first == scores[begin].first; ++end)
      positives += scores[end].second ? 1 : 0;
    visit(static_cast<double>(positives), static_cast<double>(end - begin - positives));
    begin = end;
  }
}

}  // namespace

double Auroc(std::span<const double> positive, std::span<const double> negative) {
  if (positive.empty() || negative.empty() || HasNaN(positive) || HasNaN(negative)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  double above = 0, wins = 0;  // positives above the threshold; pairs won, ties one half
  ForEachThreshold(positive, negative, [&](double positives, double negatives) {
    wins += negatives * (above + positives / 2);
    above += positives;
  });
  return wins / (static_cast<double>(positive.size()) * static_cast<double>(negative.size()));
}

double Aupr(std::span<const double> positive, std::span<const double> negative) {
  if (positive.empty() || HasNaN(positive) || HasNaN(negative)) return std::numeric_limits<double>::quiet_NaN();
  double hits = 0, seen = 0, area = 0;
  ForEachThreshold(positive, negative, [&](double positives, double negatives) {
    hits += positives;
    seen += positives + negatives;
    area += positives * hits / seen;
  });
  return area / static_cast<double>(positive.size());
}

}  // namespace chainfleet
