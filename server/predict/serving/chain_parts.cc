#include "server/predict/serving/chain_parts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "server/predict/serving/draw_selection.h"
#include "server/predict/sums/member_sums.h"

namespace chainfleet {
namespace {

PartialPrediction SumOf(std::span<const PartialPrediction* const> newest_first) {
  PartialPrediction sum = *newest_first.front();
  for (const PartialPrediction* older : newest_first.subspan(1)) AddOlder(*older, &sum);
  return sum;
}

}  // namespace

std::vector<int64_t> RunsOf(int64_t draws) {
  std::vector<int64_t> runs;
  for (int64_t run = 1; draws > 0; run *= 2) {
    runs.push_back(std::min(run, draws));
    draws -= runs.back();
  }
  return runs;
}

std::vector<int64_t> PartsOf(int64_t run) {
  std::vector<int64_t> parts = RunsOf(run);
  while (parts.size() > 3) {
    parts[1] += parts[0];
    parts.erase(parts.begin());
  }
  return parts;
}

int64_t NumParts(const std::vector<int64_t>& runs) {
  size_t parts = 0;
  for (const int64_t run : runs) parts += PartsOf(run).size();
  return static_cast<int64_t>(parts);
}

std::vector<ChainDraws> CutIntoParts(const ChainDraws& chain, const std::vector<int64_t>& runs) {
  std::vector<ChainDraws> parts;
  int64_t first = 0;
  for (const int64_t run : runs) {
    for (const int64_t part : PartsOf(run)) {
      parts.push_back(DrawsOfWave({chain}, first, part).front());
      first += part;
    }
  }
  return parts;
}

std::vector<PartialPrediction> JoinParts(const std::vector<PartialPrediction>& parts,
                                         const std::vector<int64_t>& runs) {
  std::map<DrawKind, std::vector<const PartialPrediction*>> by_kind;
  for (const PartialPrediction& part : parts) by_kind[part.kind].push_back(&part);
  std::vector<PartialPrediction> sums;
  for (const auto& [kind, of_kind] : by_kind) {
    if (std::ssize(of_kind) != NumParts(runs)) {  // some sums are missing
      sums.push_back(SumOf(of_kind));
      continue;
    }
    std::optional<PartialPrediction> sum;
    std::span<const PartialPrediction* const> left = of_kind;
    for (const int64_t run : runs) {
      const size_t count = PartsOf(run).size();
      PartialPrediction of_run = SumOf(left.first(count));
      left = left.subspan(count);
      if (sum) {
        AddOlder(of_run, &*sum);
      } else {
        sum = std::move(of_run);
      }
    }
    sums.push_back(*std::move(sum));
  }
  return sums;
}

}  // namespace chainfleet
