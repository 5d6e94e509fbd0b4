#include "server/predict/sums/chain_shares.h"

#include <cmath>

namespace chainfleet {
namespace {

void Scale(double factor, std::vector<double>* values) {
  for (double& value : *values) value *= factor;
}

void Scale(double factor, PartialPrediction* partial) {
  partial->sum_w *= factor;
  partial->sum_w2 *= factor * factor;
  const auto scale = [&]<typename Sums>(Sums& sums) {
    for (const auto& array : Sums::kArrays) Scale(factor, &(sums.*array.values));
    if constexpr (std::is_same_v<Sums, NumberSums>) {
      for (double& value : sums.log_sum_wd) value += std::log(factor);
      Scale(factor, &sums.sum_wc);
    }
  };
  std::visit(scale, partial->sums);
  Scale(factor, &partial->sum_wg);
  Scale(factor, &partial->draw_weights);
  if (partial->members) Scale(factor, &partial->members->weights);
}

}  // namespace

std::vector<PartialPrediction> Weighed(std::vector<PartialPrediction> partials, const ChainShares& shares) {
  std::map<int32_t, double> sum_w;
  for (const PartialPrediction& partial : partials) sum_w[partial.chain.index] += partial.sum_w;
  std::erase_if(partials, [&](PartialPrediction& partial) {
    const auto share = shares.find(partial.chain.index);
    const double weight = share == shares.end() ? 0 : share->second;
    if (weight > 0 && partial.num_draws > 0) Scale(weight / sum_w[partial.chain.index], &partial);
    return !(weight > 0);
  });
  return partials;
}

}  // namespace chainfleet
