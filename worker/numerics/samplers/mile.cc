#include "worker/numerics/samplers/mile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "worker/numerics/kernels/minibatch_ids.h"
#include "worker/numerics/samplers/anchored_langevin.h"
#include "worker/numerics/samplers/energy_tuner.h"
#include "worker/numerics/samplers/full_data.h"
#include "worker/numerics/samplers/sgd.h"

namespace chainfleet {
namespace {

enum : size_t { kVelocity = 1, kGradient, kFirst, kSecond };

// The numbers of a row.
enum : size_t {
  kBestLoss,  // lowest loss of the validation part
  kWaited,    // steps since it was reached
  kBegun,     // 1: the dynamics have begun
  kEnergy,
  kSpeed,  // length of the velocity arena's row
  kStep,
  kLength,
  kMostStep,
  kWeightedError,
  kWeight,
  kSeen,    // eps of part 2 so far
  kRatio,   // sum over coordinates and pairs of part 3
  kSquare,  // |grad U|^2
  kNumbersOfMile
};

int64_t ValidationRows(const MileSpec& spec, int64_t num_examples) {
  return static_cast<int64_t>(spec.validation_fraction * static_cast<double>(num_examples));
}

// A row's value in SamplerState::derived: the ids of all examples in the chain's own order, its validation part first.
using ExampleOrder = std::vector<int64_t>;

// Computes the missing orders. A row keeps its order, because computing it takes up to a third of a step.
void KnowOrders(const StepInputs& inputs, SamplerState* state) {
  const int64_t all = inputs.potential->num_examples();
  for (size_t row = 0; row < inputs.chains.size(); ++row) {
    if (state->derived[row] != nullptr) continue;
    const KeyedPermutation permutation(Fold(inputs.chains[row].key, static_cast<uint64_t>(RngStream::kInit)), all);
    auto order = std::make_shared<ExampleOrder>(static_cast<size_t>(all));
    for (int64_t i = 0; i < all; ++i) (*order)[i] = permutation(i);
    state->derived[row] = std::move(order);
  }
}

// Positions [first, first + count) of each row's order.
ChosenRows PartOfOrders(const SamplerState& state, int64_t first, int64_t count) {
  ChosenRows chosen = {{}, count};
  for (const std::shared_ptr<void>& derived : state.derived) {
    chosen.ids.push_back(static_cast<const ExampleOrder*>(derived.get())->data() + first);
  }
  return chosen;
}

// The steps of the warm-up's parts 1 and 2 together, and where 2 begins.
int64_t StepsOfTuner(const MileSpec& spec) { return spec.warm_up_steps * 9 / 10; }
int64_t FirstOfPart2(const MileSpec& spec) { return spec.warm_up_steps * 8 / 10; }

}  // namespace

void Mile::InitRow(SamplerState* state, int64_t row) const {
  std::vector<double>& numbers = state->numbers[row];
  numbers.assign(kNumbersOfMile, 0);
  numbers[kBestLoss] = numbers[kMostStep] = std::numeric_limits<double>::infinity();
  numbers[kStep] = spec.initial_step;
}

std::vector<StepInfo> Mile::Step(const StepInputs& inputs, SamplerState* state) const {
  const auto early = [&](const ChainStep& chain) { return chain.t < spec.optimizer_steps; };
  const auto descending = OnlyActive(inputs.chains, early);
  const auto moving = OnlyActive(inputs.chains, [&](const ChainStep& chain) { return !early(chain); });
  std::vector<StepInfo> infos(inputs.chains.size());
  // Evaluate everything before a row or its numbers change, because an evaluation may run out of memory.
  Descending at;
  if (Any(descending)) {
    if (ValidationRows(spec, inputs.potential->num_examples()) > 0) KnowOrders(inputs, state);
    at = EvaluateDescent(ForChains(inputs, descending), *state);
  } else {
    std::ranges::fill(state->derived, nullptr);  // the dynamics see all data in stored order
  }
  if (Any(moving)) Move(ForChains(inputs, moving), state, &infos);
  if (!Any(descending)) return infos;
  const std::vector<ChainStep>& training = at.training;
  KeepBest(at, state);
  Late<PassOutcome> updated;
  if (Any(training))
    updated = Descend(ForChains(inputs, training), state);  // its first pass may run out of memory, too
  CountWaits(at, state);
  for (size_t row = 0; row < infos.size(); ++row) {
    if (!descending[row].active) continue;
    infos[row].energy = state->numbers[row][kEnergy];
    infos[row].finite = std::isfinite(infos[row].energy) && (!training[row].active || updated[row].check == 0);
  }
  return infos;
}

Mile::Descending Mile::EvaluateDescent(const StepInputs& inputs, const SamplerState& state) const {
  const int64_t all = inputs.potential->num_examples(), held_out = ValidationRows(spec, all);
  Descending at{inputs.chains};
  for (size_t row = 0; row < at.training.size(); ++row) {
    ChainStep& chain = at.training[row];
    chain.active = chain.active && state.numbers[row][kWaited] < static_cast<double>(spec.patience);
  }
  if (!Any(at.training)) return at;
  const StepInputs some = ForChains(inputs, at.training);
  ChosenRows rest = {{}, all};
  if (held_out > 0) {
    at.losses = LossOver(some, state.theta(), PartOfOrders(state, 0, held_out));
    rest = PartOfOrders(state, held_out, all - held_out);
  }
  at.energies = GradientOver(some, state.theta(), rest, &inputs.scratch->Arena(3, state.theta())).get();
  return at;
}

Late<PassOutcome> Mile::Descend(const StepInputs& inputs, SamplerState* state) const {
  constexpr double kMomentum = 0.9;
  ThetaArena *theta = &state->theta(), *gradient = &inputs.scratch->Arena(3, state->theta());
  ThetaArena *first = &state->arenas[kFirst], *second = &state->arenas[kSecond];
  if (spec.descent == Optimizer::kHeavyBall) return UpdateHeavyBall(inputs, kMomentum, theta, first, gradient);
  return UpdateAdamw(inputs, kMomentum, theta, {first, second}, gradient);
}

void Mile::KeepBest(const Descending& at, SamplerState* state) const {
  for (size_t row = 0; row < at.losses.size(); ++row) {
    if (!at.training[row].active || !(at.losses[row] < state->numbers[row][kBestLoss])) continue;  // NaN is no best
    state->arenas[kVelocity].CopyRow(static_cast<int64_t>(row), state->theta());
  }
}

void Mile::CountWaits(const Descending& at, SamplerState* state) const {
  for (size_t row = 0; row < at.training.size(); ++row) {
    if (!at.training[row].active) continue;
    std::vector<double>& numbers = state->numbers[row];
    numbers[kEnergy] = at.energies[row];
    if (at.losses.empty()) continue;
    ++numbers[kWaited];
    if (!(at.losses[row] < numbers[kBestLoss])) continue;
    numbers[kBestLoss] = at.losses[row];
    numbers[kWaited] = 0;
  }
}

// Draws a velocity, and computes the gradient at the theta where the dynamics begin.
void Mile::Begin(const StepInputs& inputs, SamplerState* state) const {
  auto beginning = inputs.chains;
  for (size_t row = 0; row < beginning.size(); ++row) {
    beginning[row].active = beginning[row].active && state->numbers[row][kBegun] == 0;
  }
  if (!Any(beginning)) return;
  for (size_t row = 0; row < beginning.size(); ++row) {
    if (!beginning[row].active || !std::isfinite(state->numbers[row][kBestLoss])) continue;
    state->theta().CopyRow(static_cast<int64_t>(row), state->arenas[kVelocity]);
  }
  const StepInputs some = ForChains(inputs, beginning);
  ThetaArena* gradient = &inputs.scratch->Arena(2, state->theta());
  const EnergyAndSquare found = WholeGradient(some, &state->theta(), gradient);
  const std::vector<double> speeds = DrawVelocity(some, &state->arenas[kVelocity]);
  const auto dimension = static_cast<double>(state->theta().layout().num_parameters());
  for (size_t row = 0; row < beginning.size(); ++row) {
    if (!beginning[row].active) continue;
    std::vector<double>& numbers = state->numbers[row];
    numbers[kBegun] = 1;
    numbers[kEnergy] = found.energy[row];
    numbers[kSquare] = found.gradient[row].sum;
    numbers[kSpeed] = speeds[row];
    numbers[kLength] = spec.decoherence_length.value_or(std::max(std::sqrt(dimension), 15.0));
    state->arenas[kGradient].CopyRow(static_cast<int64_t>(row), *gradient);
  }
}

void Mile::Move(const StepInputs& inputs, SamplerState* state, std::vector<StepInfo>* infos) const {
  Begin(inputs, state);
  StepScratch& scratch = *inputs.scratch;
  ThetaArena* theta = &state->theta();
  // Create the last arena first, because creating one may move the others.
  scratch.Arena(3, *theta);
  const Microcanonical from = {theta, &state->arenas[kVelocity], &state->arenas[kGradient]};
  const Microcanonical to = {&scratch.Arena(0, *theta), &scratch.Arena(1, *theta), &scratch.Arena(2, *theta)};
  std::vector<MicrocanonicalRow> rows(inputs.chains.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    const std::vector<double>& numbers = state->numbers[row];
    rows[row] = {numbers[kEnergy], numbers[kSpeed], numbers[kSquare], numbers[kStep], numbers[kLength]};
  }
  const auto moves = MoveMicrocanonically(inputs, rows, from, to);
  const auto dimension = static_cast<double>(theta->layout().num_parameters());
  auto moved = inputs.chains;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (!inputs.chains[row].active) continue;
    std::vector<double>& numbers = state->numbers[row];
    StepInfo& info = (*infos)[row];
    info.energy = numbers[kEnergy];
    info.step_size = numbers[kStep];
    const int64_t step = inputs.chains[row].t - spec.optimizer_steps;
    const bool tunes = step < StepsOfTuner(spec);
    moved[row].active = tunes ? TuneStep(moves[row], step, dimension, &numbers) : moves[row].finite;
    info.finite = std::isfinite(info.energy) && (tunes || moved[row].active);
    if (!moved[row].active) continue;
    numbers[kEnergy] = moves[row].energy;
    numbers[kSpeed] = moves[row].length;
    numbers[kSquare] = moves[row].square;
  }
  TakeRows(moved, {{from.theta, to.theta}, {from.velocity, to.velocity}, {from.gradient, to.gradient}});
  if (spec.decoherence_length) return;
  const StepInputs tuned = ForChains(inputs, moved);
  TakeMoments(tuned, state);
  TakeSums(tuned, state);
}

bool Mile::TuneStep(const MicrocanonicalMove& move, int64_t step, double dimension,
                    std::vector<double>* numbers) const {
  std::vector<double>& of = *numbers;
  const TunedStep tuned{of[kStep], of[kMostStep], of[kWeightedError], of[kWeight]};
  if (!move.finite) {
    BackOff(tuned);
    return false;
  }
  const double done = static_cast<double>(step) / static_cast<double>(StepsOfTuner(spec) + 1);
  AdaptStep(move.energy_error, dimension * TargetAt(done, spec.energy_variance_start, spec.energy_variance_end), tuned);
  return true;
}

void Mile::TakeMoments(const StepInputs& inputs, SamplerState* state) const {
  const int64_t last = spec.optimizer_steps + StepsOfTuner(spec) - 1;
  const auto due = OnlyActive(inputs.chains, [&](const ChainStep& chain) {
    return chain.t >= spec.optimizer_steps + FirstOfPart2(spec) && chain.t <= last;
  });
  if (!Any(due)) return;
  const auto variances = RunPass(Pass::kMoments, {&state->arenas[kFirst], &state->arenas[kSecond], &state->theta()},
                                 due, [&](int64_t row, float* s) {
                                   std::vector<double>& numbers = state->numbers[row];
                                   numbers[kSeen] += numbers[kStep];
                                   s[0] = static_cast<float>(numbers[kStep] / numbers[kSeen]);
                                 });
  for (size_t row = 0; row < due.size(); ++row) {
    if (!due[row].active || due[row].t != last || !(variances[row].sum > 0)) continue;
    state->numbers[row][kLength] = std::sqrt(variances[row].sum);
  }
}

void Mile::TakeSums(const StepInputs& inputs, SamplerState* state) const {
  const auto dimension = static_cast<double>(state->theta().layout().num_parameters());
  const int64_t pairs = std::clamp<int64_t>(static_cast<int64_t>(100 / dimension), 2, 10);
  const int64_t b = (spec.warm_up_steps - StepsOfTuner(spec)) / (2 * pairs);
  const auto step_of = [&](const ChainStep& chain) { return chain.t - spec.optimizer_steps - StepsOfTuner(spec); };
  const auto due = OnlyActive(
      inputs.chains, [&](const ChainStep& chain) { return step_of(chain) >= 0 && step_of(chain) < 2 * pairs * b; });
  if (!Any(due)) return;
  ThetaArena *sums = &state->arenas[kFirst], *variances = &state->arenas[kSecond];
  RunPass(Pass::kAccumulate, {sums, &state->theta()}, due, [&](int64_t row, float* s) {
    const int64_t step = step_of(due[row]);
    s[0] = step / b % 2 == 0 ? 1.0f : -1.0f;
    s[1] = step % (2 * b) == 0 ? 0.0f : 1.0f;
  });
  const auto ending = OnlyActive(due, [&](const ChainStep& chain) { return (step_of(chain) + 1) % (2 * b) == 0; });
  if (!Any(ending)) return;
  const auto ratios = RunPass(Pass::kSquareRatio, {sums, variances}, ending, [](int64_t, float*) {});
  for (size_t row = 0; row < ending.size(); ++row) {
    if (!ending[row].active) continue;
    std::vector<double>& numbers = state->numbers[row];
    numbers[kRatio] += ratios[row].sum;
    if (step_of(ending[row]) + 1 < 2 * pairs * b) continue;
    const double tau = numbers[kRatio] / (dimension * static_cast<double>(2 * pairs * b));
    if (std::isfinite(tau) && tau > 0) numbers[kLength] = 0.4 * numbers[kStep] * tau;
  }
}

}  // namespace chainfleet
