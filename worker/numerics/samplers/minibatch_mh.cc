#include "worker/numerics/samplers/minibatch_mh.h"

#include <cmath>

#include "worker/numerics/samplers/batch_differences.h"
#include "worker/numerics/samplers/langevin_proposal.h"
#include "worker/numerics/samplers/metropolis.h"
#include "worker/numerics/samplers/noisy_acceptance.h"

namespace chainfleet {
namespace {

using Rule = MinibatchMh::Rule;

// Sums over a row's steps, after the numbers of metropolis.h.
enum OwnNumber : int { kVarianceSum = kFirstOwnNumber, kSkewSum, kKurtosisSum, kGuarded, kNumbers };

struct Decision {
  bool accept = false;
  bool guarded = false;  // the noise is larger than the rule can correct
};

// `cost` is the noisy -T log ratio; `x` the variance of its noise divided by T^2.
Decision Decide(const MinibatchMh& kernel, const ChainStep& chain, double cost, double x) {
  const double limit = static_cast<double>(kernel.num_batches) / 4;
  switch (kernel.rule) {
    case Rule::kPenalty:
      return {Accepts(chain, cost + chain.temperature * CorrectedPenalty(x, kernel.num_batches)), x > limit};
    case Rule::kPlainPenalty:
      return {Accepts(chain, cost + chain.temperature * x / 2), x > limit};
    case Rule::kNone:
      return {Accepts(chain, cost), false};
    case Rule::kBarker:
      break;
  }
  const LogisticRemainder remainder = RemainderToLogistic(chain, x);
  return {std::isfinite(cost) && cost < chain.temperature * remainder.noise, remainder.short_of};
}

// The proposal, with T log(q(to | from) / q(from | to)).
struct Proposed {
  Late<PassOutcome> made;
  std::vector<double> cost;
};

Proposed ProposeWalk(const StepInputs& inputs, ThetaArena* theta, ThetaArena* to) {
  return {RunPass(
              Pass::kNormalAround, {to, theta}, inputs.chains,
              [&](int64_t row, float* s) { s[0] = static_cast<float>(inputs.chains[row].step_size); },
              RngStream::kProposal),
          std::vector<double>(theta->rows(), 0)};
}

Proposed ProposeDrift(const StepInputs& inputs, double likelihood_weight, ThetaArena* theta, ThetaArena* to) {
  StepScratch& scratch = *inputs.scratch;
  ThetaArena *gradient = &scratch.gradient, *gradient_to = &scratch.arenas[1];
  MatchRows(*theta, gradient);
  const int64_t n = inputs.batches->batch_size();
  std::vector<int64_t> ids(theta->rows() * n);
  for (int64_t row = 0; row < theta->rows(); ++row) {
    inputs.batches->Fill(inputs.chains[row].key, inputs.chains[row].t, &ids[row * n]);
  }
  Evaluate(inputs, *theta, {ids.data(), n}, gradient);
  Proposed proposed = {ProposeLangevin(inputs, likelihood_weight, to, theta, gradient),
                       std::vector<double>(theta->rows(), 0)};
  Evaluate(inputs, *to, {ids.data(), n}, gradient_to);
  AddLangevinCost(inputs, likelihood_weight, to, theta, gradient, gradient_to, &proposed.cost);
  return proposed;
}

}  // namespace

void MinibatchMh::InitRow(SamplerState* state, int64_t row) const { state->numbers[row].assign(kNumbers, 0); }

std::vector<StepInfo> MinibatchMh::Step(const StepInputs& inputs, SamplerState* state) const {
  ThetaArena* theta = &state->theta();
  // Create the last arena first, because creating one may move the others.
  if (proposal == Proposal::kLangevin) inputs.scratch->Arena(1, *theta);
  ThetaArena* to = &inputs.scratch->Arena(0, *theta);
  const double weight = data_size == 0 ? 1 : data_size / static_cast<double>(inputs.potential->num_examples());
  const Proposed proposed =
      proposal == Proposal::kLangevin ? ProposeDrift(inputs, weight, theta, to) : ProposeWalk(inputs, theta, to);
  const auto seen = CompareOnBatches(inputs, *theta, *to, num_batches, weight);
  std::vector<Verdict> verdicts(seen.size());
  for (size_t row = 0; row < seen.size(); ++row) {
    const ChainStep& chain = inputs.chains[row];
    if (!chain.active) continue;
    const double variance = seen[row].variance;
    const double x = variance == 0 ? 0 : variance / (chain.temperature * chain.temperature);
    const Decision decision = Decide(*this, chain, seen[row].difference + proposed.cost[row], x);
    verdicts[row] = {seen[row].energy, true, proposed.made[row].check == 0 && decision.accept};
    // A proposal that overflowed gives no information about the noise: never count it.
    std::vector<double>& numbers = state->numbers[row];
    if (std::isfinite(x)) numbers[kVarianceSum] += x;
    if (std::isfinite(seen[row].skew)) numbers[kSkewSum] += seen[row].skew;
    if (std::isfinite(seen[row].kurtosis)) numbers[kKurtosisSum] += seen[row].kurtosis;
    numbers[kGuarded] += decision.guarded ? 1 : 0;
  }
  std::vector<StepInfo> info = Settle(inputs, verdicts, {{theta, to}}, state);
  for (size_t row = 0; row < info.size(); ++row) {
    if (!inputs.chains[row].active) continue;
    const std::vector<double>& numbers = state->numbers[row];
    info[row].metropolis.noise_variance = numbers[kVarianceSum] / numbers[kStepCount];
    info[row].metropolis.skew = numbers[kSkewSum] / numbers[kStepCount];
    info[row].metropolis.kurtosis = numbers[kKurtosisSum] / numbers[kStepCount];
    info[row].metropolis.guarded = numbers[kGuarded] / numbers[kStepCount];
  }
  return info;
}

}  // namespace chainfleet
