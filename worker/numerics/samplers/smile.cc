#include "worker/numerics/samplers/smile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/samplers/anchored_langevin.h"
#include "worker/numerics/samplers/microcanonical.h"
#include "worker/numerics/samplers/sgd.h"
#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {
namespace {

enum : size_t { kVelocity = 1, kGradient, kScale, kNoise };

// The numbers of a row.
enum : size_t {
  kBegun,  // 1: the dynamics have begun
  kSpeed,  // length of u
  kStep,
  kMostStep,
  kWeightedError,
  kWeight,
  kForce,      // running mean of |grad U / s|^2 / T^2
  kLogSteps,   // sum over the last tenth of the warm-up
  kLength,     // L
  kMeanNoise,  // mean over the coordinates of the sums of part 2
  kNumbersOfSmile
};

// Labels of the noise of directions, besides that of the refresh.
constexpr uint64_t kFirst = 1, kAfterScaling = 2, kAfterUndoing = 3;

int64_t FirstOfPart2(const SmileSpec& spec) { return spec.warm_up_steps * 4 / 10; }
int64_t FirstOfPart3(const SmileSpec& spec) { return spec.warm_up_steps * 5 / 10; }

}  // namespace

void Smile::InitRow(SamplerState* state, int64_t row) const {
  std::vector<double>& numbers = state->numbers[row];
  numbers.assign(kNumbersOfSmile, 0);
  numbers[kMostStep] = std::numeric_limits<double>::infinity();
  numbers[kStep] = spec.initial_step;
  numbers[kLength] = spec.decoherence_length.value_or(std::numeric_limits<double>::infinity());
}

bool Smile::InPart2(int64_t t) const {
  const int64_t step = t - spec.optimizer_steps;
  return spec.precondition && step > 0 && step >= FirstOfPart2(spec) && step < FirstOfPart3(spec);
}

std::vector<StepInfo> Smile::Step(const StepInputs& inputs, SamplerState* state) const {
  constexpr double kMomentum = 0.9;
  const auto early = [&](const ChainStep& chain) { return chain.t < spec.optimizer_steps; };
  const auto descending = OnlyActive(inputs.chains, early);
  const auto moving = OnlyActive(inputs.chains, [&](const ChainStep& chain) { return !early(chain); });
  std::vector<StepInfo> infos(inputs.chains.size());
  ThetaArena* theta = &state->theta();
  ThetaArena* descent = &inputs.scratch->Arena(4, *theta);
  // Evaluate everything before a row descends, because an evaluation may run out of memory.
  const StepInputs some = ForChains(inputs, descending);
  std::vector<double> energies;
  if (Any(descending)) {
    EvaluateBatches(some, *theta);
    energies = inputs.scratch->energy.get();
    std::swap(inputs.scratch->gradient, *descent);
  }
  if (Any(moving)) Move(ForChains(inputs, moving), state, &infos);
  if (!Any(descending)) return infos;
  ThetaArena *first = &state->arenas[kVelocity], *second = &state->arenas[kNoise];
  const Late<PassOutcome> updated = spec.descent == Optimizer::kHeavyBall
                                        ? UpdateHeavyBall(some, kMomentum, theta, first, descent)
                                        : UpdateAdamw(some, kMomentum, theta, {first, second}, descent);
  for (size_t row = 0; row < infos.size(); ++row) {
    if (!descending[row].active) continue;
    infos[row].energy = energies[row];
    infos[row].finite = std::isfinite(energies[row]) && updated[row].check == 0;
  }
  return infos;
}

void Smile::Begin(const StepInputs& inputs, SamplerState* state) const {
  auto beginning = inputs.chains;
  for (size_t row = 0; row < beginning.size(); ++row) {
    std::vector<double>& numbers = state->numbers[row];
    beginning[row].active = beginning[row].active && numbers[kBegun] == 0;
    if (!beginning[row].active) continue;
    numbers[kBegun] = 1;
    RowsView(state->arenas[kScale])[static_cast<int64_t>(row)].fill_(1);
  }
  DrawDirection(ForChains(inputs, beginning), kFirst, state);
}

void Smile::DrawDirection(const StepInputs& inputs, uint64_t label, SamplerState* state) const {
  if (!Any(inputs.chains)) return;
  ThetaArena *velocity = &state->arenas[kVelocity], *scale = &state->arenas[kScale];
  for (int64_t row = 0; row < velocity->rows(); ++row) {
    if (inputs.chains[row].active) RowsView(*velocity)[row].zero_();
  }
  RunPass(
      Pass::kDiagonalDraw, {velocity, velocity, scale}, inputs.chains, [](int64_t, float* s) { s[0] = 1; },
      RngStream::kMomentum, label);
  const auto squares = RunPass(Pass::kSquareRatio, {velocity, scale}, inputs.chains, [](int64_t, float*) {});
  for (size_t row = 0; row < inputs.chains.size(); ++row) {
    if (inputs.chains[row].active) state->numbers[row][kSpeed] = std::sqrt(squares[row].sum);
  }
}

std::vector<Smile::Moving> Smile::Propose(const StepInputs& inputs, SamplerState* state) const {
  StepScratch& scratch = *inputs.scratch;
  ThetaArena *theta = &state->theta(), *velocity = &state->arenas[kVelocity], *scale = &state->arenas[kScale];
  ThetaArena *to = &scratch.Arena(0, *theta), *turned = &scratch.Arena(1, *theta), *scaled = &scratch.Arena(2, *theta);
  const auto dimension = static_cast<double>(theta->layout().num_parameters());
  std::vector<Moving> moves(inputs.chains.size());
  // Half a turn of u, which is the row `at`, by the scratch's gradient.
  const auto turns_of = [&](ThetaArena* at, bool is_first) {
    const auto squares =
        RunPass(Pass::kScale, {scaled, &scratch.gradient, scale}, inputs.chains, [](int64_t, float*) {});
    const auto products = RunPass(Pass::kDot, {at, &scratch.gradient}, inputs.chains, [](int64_t, float*) {});
    std::vector<TurnScalars> turns(moves.size());
    for (size_t row = 0; row < moves.size(); ++row) {
      if (!inputs.chains[row].active) continue;
      const std::vector<double>& numbers = state->numbers[row];
      turns[row] = TurnBy(numbers[kStep] / 2, is_first ? numbers[kSpeed] : 1, products[row].sum, squares[row].sum,
                          dimension, inputs.chains[row].temperature);
      if (is_first) moves[row].square = squares[row].sum;
      moves[row].energy_error += turns[row].kinetic;
    }
    return turns;
  };
  EvaluateBatches(inputs, *theta);
  const std::vector<double> before = scratch.energy.get();
  AddPrior(inputs, theta, &scratch.gradient);
  const auto first = turns_of(velocity, true);
  const auto drifted =
      RunPass(Pass::kTurn, {to, turned, theta, velocity, scaled}, inputs.chains, [&](int64_t row, float* s) {
        s[0] = static_cast<float>(first[row].keep);
        s[1] = static_cast<float>(first[row].force);
        s[2] = static_cast<float>(state->numbers[row][kStep]);
      });
  for (int64_t row = 0; row < theta->rows(); ++row) {
    if (!inputs.chains[row].active) to->CopyRow(row, *theta);
  }
  std::swap(scratch.gradient, scratch.Arena(3, *theta));
  EvaluateBatches(inputs, *to);
  const std::vector<double> after = scratch.energy.get();
  AddPrior(inputs, to, &scratch.gradient);
  const auto second = turns_of(turned, false);
  RunPass(Pass::kBlend, {turned, scaled}, inputs.chains, [&](int64_t row, float* s) {
    s[0] = static_cast<float>(second[row].keep);
    s[1] = static_cast<float>(second[row].force);
  });
  RunPass(
      Pass::kDiagonalDraw, {turned, turned, scale}, inputs.chains,
      [&](int64_t row, float* s) {
        const std::vector<double>& numbers = state->numbers[row];
        s[0] = RefreshNoise(numbers[kStep], numbers[kLength], dimension);
      },
      RngStream::kMomentum);
  const auto lengths = RunPass(Pass::kSquareRatio, {turned, scale}, inputs.chains, [](int64_t, float*) {});
  for (size_t row = 0; row < moves.size(); ++row) {
    if (!inputs.chains[row].active) continue;
    Moving& move = moves[row];
    move.energy = before[row];
    move.energy_error += (after[row] - before[row]) / inputs.chains[row].temperature;
    move.length = std::sqrt(lengths[row].sum);
    move.finite = drifted[row].check == 0 && std::isfinite(move.energy_error) && std::isfinite(move.length);
  }
  return moves;
}

void Smile::Move(const StepInputs& inputs, SamplerState* state, std::vector<StepInfo>* infos) const {
  StepScratch& scratch = *inputs.scratch;
  Begin(inputs, state);
  const std::vector<Moving> moves = Propose(inputs, state);
  auto moved = inputs.chains, undone = inputs.chains;
  for (size_t row = 0; row < moves.size(); ++row) moved[row].active = moved[row].active && moves[row].finite;
  GatherNoise(ForChains(inputs, moved), state);
  const auto dimension = static_cast<double>(state->theta().layout().num_parameters());
  for (size_t row = 0; row < moves.size(); ++row) {
    if (!inputs.chains[row].active) continue;
    std::vector<double>& numbers = state->numbers[row];
    StepInfo& info = (*infos)[row];
    info.energy = moves[row].energy;
    info.step_size = numbers[kStep];
    const int64_t step = inputs.chains[row].t - spec.optimizer_steps;
    const bool warms_up = step < spec.warm_up_steps;
    undone[row].active = !moves[row].finite && warms_up;
    info.finite = std::isfinite(info.energy) && (moves[row].finite || warms_up);
    if (moves[row].finite) numbers[kSpeed] = moves[row].length;
    if (warms_up) Tune(moves[row], step, dimension, inputs.chains[row].temperature, &numbers);
  }
  TakeRows(moved, {{&state->theta(), &scratch.Arena(0, state->theta())},
                   {&state->arenas[kVelocity], &scratch.Arena(1, state->theta())},
                   {&state->arenas[kGradient], &scratch.gradient}});
  DrawDirection(ForChains(inputs, undone), kAfterUndoing, state);
  Rescale(inputs, state);
}

void Smile::Tune(const Moving& move, int64_t step, double dimension, double temperature,
                 std::vector<double>* of) const {
  std::vector<double>& numbers = *of;
  double& eps = numbers[kStep];
  const TunedStep tuned{eps, numbers[kMostStep], numbers[kWeightedError], numbers[kWeight]};
  const double square = move.square / (temperature * temperature);
  if (!move.finite) {
    BackOff(tuned);
  } else if (!InPart2(step + spec.optimizer_steps)) {
    numbers[kForce] += (numbers[kForce] == 0 ? 1 : 0.01) * (square - numbers[kForce]);
    const double done = static_cast<double>(step) / static_cast<double>(spec.warm_up_steps + 1);
    AdaptStep(move.energy_error, dimension * TargetAt(done, spec.energy_variance_start, spec.energy_variance_end),
              tuned);
  }
  const int64_t first = spec.warm_up_steps * 9 / 10;
  if (step >= first) numbers[kLogSteps] += std::log(eps);
  if (step + 1 == spec.warm_up_steps) eps = std::exp(numbers[kLogSteps] / static_cast<double>(step + 1 - first));
  eps = std::min(eps, numbers[kMostStep]);
  if (numbers[kForce] == 0) return;
  eps = std::min(eps, 2 * kLargestTurn * (dimension - 1) / std::sqrt(numbers[kForce]));
  if (!spec.decoherence_length) {
    numbers[kLength] = spec.noise_share * 2 * dimension * dimension / (eps * numbers[kForce]);
  }
}

void Smile::GatherNoise(const StepInputs& inputs, SamplerState* state) const {
  const auto due = OnlyActive(inputs.chains, [&](const ChainStep& chain) { return InPart2(chain.t); });
  if (!Any(due)) return;
  const auto sums =
      RunPass(Pass::kGatherNoise,
              {&state->arenas[kNoise], &inputs.scratch->Arena(3, state->theta()), &state->arenas[kGradient]}, due,
              [&](int64_t row, float* s) { s[0] = state->numbers[row][kMeanNoise] > 0 ? 1.0f : 0.0f; });
  const auto dimension = static_cast<double>(state->theta().layout().num_parameters());
  for (size_t row = 0; row < due.size(); ++row) {
    if (due[row].active) state->numbers[row][kMeanNoise] = sums[row].sum / dimension;
  }
}

// False for noise that hardly turns u, such as the rounding of steps on all data: it says nothing about a scale.
bool Smile::HasNoise(const std::vector<double>& numbers, double dimension, double temperature) const {
  const auto pairs = static_cast<double>(FirstOfPart3(spec) - std::max<int64_t>(FirstOfPart2(spec), 1));
  const double square = numbers[kForce] * temperature * temperature;
  const double noise = numbers[kMeanNoise] / pairs * dimension;
  return noise > kLeastNoise * square && std::isfinite(noise);
}

void Smile::Rescale(const StepInputs& inputs, SamplerState* state) const {
  auto ending = inputs.chains;
  const auto dimension = static_cast<double>(state->theta().layout().num_parameters());
  for (size_t row = 0; row < ending.size(); ++row) {
    std::vector<double>& numbers = state->numbers[row];
    const bool is_last = ending[row].t + 1 - spec.optimizer_steps == FirstOfPart3(spec);
    ending[row].active = ending[row].active && is_last && HasNoise(numbers, dimension, ending[row].temperature);
    if (!ending[row].active) continue;
    numbers[kWeightedError] = numbers[kWeight] = numbers[kForce] = 0;
    numbers[kMostStep] = std::numeric_limits<double>::infinity();
  }
  if (!Any(ending)) return;
  RunPass(Pass::kInvert, {&state->arenas[kScale], &state->arenas[kNoise]}, ending, [&](int64_t row, float* s) {
    const double mean = state->numbers[row][kMeanNoise];
    s[0] = static_cast<float>(mean);
    s[1] = static_cast<float>(kLeastScale * mean);
  });
  DrawDirection(ForChains(inputs, ending), kAfterScaling, state);
}

}  // namespace chainfleet
