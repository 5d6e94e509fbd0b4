#include "worker/numerics/samplers/metropolis.h"

#include <cmath>

namespace chainfleet {

bool Accepts(const ChainStep& chain, double cost) {
  const PhiloxBlock block = RandomBlock(chain.key, RngStream::kAccept, static_cast<uint64_t>(chain.t), 0);
  const double exponential = -std::log(UniformDouble(block.word[0], block.word[1]));
  return std::isfinite(cost) && cost <= chain.temperature * exponential;
}

std::vector<StepInfo> Settle(const StepInputs& inputs, const std::vector<Verdict>& verdicts,
                             std::initializer_list<Move> moves, SamplerState* state) {
  std::vector<StepInfo> info(verdicts.size());
  for (size_t row = 0; row < verdicts.size(); ++row) {
    if (!inputs.chains[row].active) continue;
    info[row].energy = verdicts[row].energy;
    info[row].finite = verdicts[row].finite && std::isfinite(verdicts[row].energy);
    info[row].moved = info[row].finite && verdicts[row].accept;
    if (info[row].moved) {
      for (const Move& move : moves) move.to->CopyRow(static_cast<int64_t>(row), *move.from);
    }
    std::vector<double>& numbers = state->numbers[row];
    numbers[kStepCount] += 1;
    numbers[kAcceptCount] += info[row].moved ? 1 : 0;
    info[row].metropolis.acceptance = numbers[kAcceptCount] / numbers[kStepCount];
  }
  return info;
}

}  // namespace chainfleet
