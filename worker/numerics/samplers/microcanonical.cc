#include "worker/numerics/samplers/microcanonical.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/samplers/full_data.h"
#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {
namespace {

constexpr double kOuter = 0.1931833275037836;
constexpr uint64_t kFirstVelocity = 1;  // label of its noise, which is not that of the same step's refresh

// `squares`: |grad U|^2 of each row.
std::vector<TurnScalars> Turns(const StepInputs& inputs, const std::vector<MicrocanonicalRow>& rows, double part,
                               bool is_first, Microcanonical at, const std::vector<double>& squares,
                               std::vector<MicrocanonicalMove>* moves) {
  const auto products = RunPass(Pass::kDot, {at.velocity, at.gradient}, inputs.chains, [](int64_t, float*) {});
  const auto dimension = static_cast<double>(at.theta->layout().num_parameters());
  std::vector<TurnScalars> turns(rows.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    if (!inputs.chains[row].active) continue;
    turns[row] = TurnBy(part * rows[row].step, is_first ? rows[row].length : 1, products[row].sum, squares[row],
                        dimension, inputs.chains[row].temperature);
    (*moves)[row].energy_error += turns[row].kinetic;
    (*moves)[row].finite = (*moves)[row].finite && std::isfinite(turns[row].kinetic);
  }
  return turns;
}

void SeeFinite(const Late<PassOutcome>& outcomes, std::vector<MicrocanonicalMove>* moves) {
  for (size_t row = 0; row < moves->size(); ++row) (*moves)[row].finite &= outcomes[row].check == 0;
}

}  // namespace

TurnScalars TurnBy(double way, double length, double product, double square, double dimension, double temperature) {
  const double norm = std::sqrt(square);
  if (norm == 0) return {1 / length};
  const double along = std::clamp(-product / (norm * length), -1.0, 1.0);
  const double turned = way * norm / (temperature * (dimension - 1)), rest = std::exp(-turned);
  const double size = 1 + along + (1 - along) * rest * rest;
  return {2 * rest / (size * length), -(1 - rest) * (1 + rest + along * (1 - rest)) / (size * norm),
          (dimension - 1) * (turned - std::numbers::ln2 + std::log(size))};
}

float RefreshNoise(double step, double decoherence_length, double dimension) {
  // Beyond 60 nothing is left of the old direction, and the noise would soon be infinite.
  const double lost = std::expm1(std::min(60.0, 2 * step / decoherence_length));
  return static_cast<float>(std::sqrt(lost / dimension));
}

std::vector<double> DrawVelocity(const StepInputs& inputs, ThetaArena* velocity) {
  for (int64_t row = 0; row < velocity->rows(); ++row) {
    if (inputs.chains[row].active) RowsView(*velocity)[row].zero_();
  }
  const auto squares = RunPass(
      Pass::kNormalAround, {velocity, velocity}, inputs.chains, [](int64_t, float* s) { s[0] = 1; },
      RngStream::kMomentum, kFirstVelocity);
  std::vector<double> lengths;
  for (const PassOutcome& outcome : squares.get()) lengths.push_back(std::sqrt(outcome.sum));
  return lengths;
}

EnergyAndSquare WholeGradient(const StepInputs& inputs, ThetaArena* theta, ThetaArena* gradient) {
  Late<double> energy = GradientOverAllData(inputs, *theta, gradient);
  return {std::move(energy), AddPrior(inputs, theta, gradient)};
}

std::vector<MicrocanonicalMove> MoveMicrocanonically(const StepInputs& inputs,
                                                     const std::vector<MicrocanonicalRow>& rows, Microcanonical from,
                                                     Microcanonical to) {
  std::vector<MicrocanonicalMove> moves(rows.size());
  std::vector<double> squares;
  for (const MicrocanonicalRow& row : rows) squares.push_back(row.square);
  Late<double> energy;
  for (const double part : {kOuter, 1 - 2 * kOuter}) {
    const bool is_first = part == kOuter;
    const Microcanonical at = is_first ? from : to;
    const auto turns = Turns(inputs, rows, part, is_first, at, squares, &moves);
    SeeFinite(RunPass(Pass::kTurn, {to.theta, to.velocity, at.theta, at.velocity, at.gradient}, inputs.chains,
                      [&](int64_t row, float* s) {
                        s[0] = static_cast<float>(turns[row].keep);
                        s[1] = static_cast<float>(turns[row].force);
                        s[2] = static_cast<float>(rows[row].step / 2);
                      }),
              &moves);
    EnergyAndSquare found = WholeGradient(inputs, to.theta, to.gradient);
    energy = std::move(found.energy);
    for (size_t row = 0; row < rows.size(); ++row) squares[row] = found.gradient[row].sum;
  }
  const auto turns = Turns(inputs, rows, kOuter, false, to, squares, &moves);
  const auto dimension = static_cast<double>(to.theta->layout().num_parameters());
  const auto refreshed = RunPass(
      Pass::kRefresh, {to.velocity, to.gradient}, inputs.chains,
      [&](int64_t row, float* s) {
        s[0] = static_cast<float>(turns[row].keep);
        s[1] = static_cast<float>(turns[row].force);
        s[2] = RefreshNoise(rows[row].step, rows[row].decoherence_length, dimension);
      },
      RngStream::kMomentum);
  SeeFinite(refreshed, &moves);
  for (size_t row = 0; row < moves.size(); ++row) {
    if (!inputs.chains[row].active) continue;
    MicrocanonicalMove& move = moves[row];
    move.energy = energy[row];
    move.square = squares[row];
    move.length = std::sqrt(refreshed[row].sum);
    move.energy_error += (move.energy - rows[row].energy) / inputs.chains[row].temperature;
    move.finite = move.finite && std::isfinite(move.energy_error);
  }
  return moves;
}

}  // namespace chainfleet
