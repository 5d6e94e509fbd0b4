#include "server/predict/sums/batch_means.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "server/predict/sums/score_sums.h"

namespace chainfleet {
namespace {

constexpr int64_t kMostBlocks = 8;  // few, so that each is long compared to the autocorrelation time of the draws

// Adds up the i-th parts of all kinds. Empty if kinds differ in their steps, because some draws could not be read.
std::vector<ScoreSums> SumByPart(const std::vector<PartialPrediction>& parts) {
  std::map<DrawKind, size_t> seen;
  std::vector<ScoreSums> sums;
  for (const PartialPrediction& part : parts) {
    if (part.num_draws == 0) continue;
    const size_t at = seen[part.kind]++;
    if (at == sums.size()) {
      sums.push_back(SumsOf(part));
    } else {
      if (sums[at].num_draws != part.num_draws) return {};
      sums[at].Add(SumsOf(part));
    }
  }
  const bool alike = std::ranges::all_of(seen, [&](const auto& kind) { return kind.second == sums.size(); });
  return alike ? sums : std::vector<ScoreSums>();
}

void Extend(const ScoreSums& part, ScoreSums* block) {
  block->Add(part);
  block->num_draws += part.num_draws;
}

std::vector<ScoreSums> JoinToBlocks(const std::vector<ScoreSums>& parts) {
  int64_t draws = 0;
  for (const ScoreSums& part : parts) draws += part.num_draws;
  const int64_t least = (draws + kMostBlocks - 1) / kMostBlocks;
  std::vector<ScoreSums> blocks;
  ScoreSums open;
  for (const ScoreSums& part : parts) {
    Extend(part, &open);
    if (open.num_draws >= least) blocks.push_back(std::exchange(open, {}));
  }
  if (open.num_draws > 0 && !blocks.empty()) Extend(open, &blocks.back());
  return blocks;
}

// The result without one block.
struct Deletion {
  PredictiveScores scores;  // without the block
  double odds = 0;          // weight of the other blocks divided by the weight of this block
};

template <typename Scores>
double JackknifeError(const std::vector<Deletion>& deletions, double of_all, const std::vector<double> Scores::*score,
                      size_t at) {
  std::vector<double> deviation;
  double bias = 0;
  for (const Deletion& d : deletions) {
    const double without = (std::get<Scores>(d.scores.of).*score)[at];
    deviation.push_back(without == of_all ? 0 : without - of_all);  // both may be -inf
    bias += d.odds / (d.odds + 1) * deviation.back();
  }
  double squares = 0;
  for (size_t b = 0; b < deletions.size(); ++b) {
    const double spread = bias - deletions[b].odds * deviation[b];
    squares += spread * spread / deletions[b].odds;
  }
  return std::sqrt(squares / static_cast<double>(deletions.size()));
}

}  // namespace

PredictiveScores BatchMeansErrors(const std::vector<PartialPrediction>& parts) {
  const std::vector<ScoreSums> blocks = JoinToBlocks(SumByPart(parts));
  if (static_cast<int64_t>(blocks.size()) < kMinBlocks) return {};
  const Targets targets = parts.front().targets();
  ScoreSums total;
  for (const ScoreSums& block : blocks) total.Add(block);
  std::vector<Deletion> deletions;
  for (const ScoreSums& block : blocks) {
    ScoreSums others;  // added up anew: subtraction from the total would leave rounding errors
    for (const ScoreSums& other : blocks) {
      if (&other != &block) others.Add(other);
    }
    deletions.push_back({ScoresOf(others, targets), others.w / block.w});
  }
  PredictiveScores errors = ScoresOf(total, targets);
  const auto replace = [&]<typename Scores>(Scores& scores) {
    for (const auto& array : Scores::kArrays) {
      std::vector<double>& values = scores.*array.values;
      for (size_t i = 0; i < values.size(); ++i) values[i] = JackknifeError(deletions, values[i], array.values, i);
    }
  };
  std::visit(replace, errors.of);
  return errors;
}

}  // namespace chainfleet
