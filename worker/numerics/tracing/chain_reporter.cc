#include "worker/numerics/tracing/chain_reporter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "absl/cleanup/cleanup.h"
#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/tracing/curvature.h"
#include "worker/numerics/tracing/gradient_variance.h"
#include "worker/numerics/tracing/linear_response.h"

namespace chainfleet {
namespace {

// Labels that no epoch, stream or pass folds into a chain's key.
constexpr uint64_t kVarianceLabel = 0x7661'7269'616e'6365, kCurvatureLabel = 0x6375'7276'6174'7572;
// Parameters of an arena at a time: a measurement keeps five or six arenas besides those of the chains.
constexpr int64_t kMostParameters = int64_t{1} << 24, kMostParametersOnGpu = int64_t{1} << 28;

using MeasureRows = std::function<std::vector<double>(const StepInputs&, ThetaArena*)>;
using SeeRow = std::function<void(int64_t row, double value)>;

// Calls `measure` on copies of `rows` of `theta`, with keys of their own, as many at a time as memory should hold.
// `about_to`: told the rows of a part.
void MeasureInParts(const StepInputs& inputs, const std::vector<int64_t>& rows, uint64_t label, const ThetaArena& theta,
                    const std::function<void(std::span<const int64_t>)>& about_to, const MeasureRows& measure,
                    const SeeRow& see) {
  const int64_t parameters = theta.device().is_cuda() ? kMostParametersOnGpu : kMostParameters;
  const auto most = static_cast<size_t>(std::max<int64_t>(1, parameters / theta.row_stride()));
  for (size_t first = 0; first < rows.size(); first += most) {
    const size_t count = std::min(most, rows.size() - first);
    ThetaArena part(theta.shared_layout(), theta.device());
    std::vector<ChainStep> chains;
    for (size_t i = 0; i < count; ++i) {
      ChainStep chain = inputs.chains[rows[first + i]];
      chain.key = Fold(Fold(chain.key, label), static_cast<uint64_t>(chain.t));
      chain.t = 0;
      chains.push_back(chain);
      part.AddRow();
    }
    for (size_t i = 0; i < count; ++i) {
      RowsView(part).select(0, static_cast<int64_t>(i)).copy_(RowsView(theta).select(0, rows[first + i]));
    }
    StepScratch scratch(ThetaArena(theta.shared_layout(), theta.device()));
    about_to(std::span(rows).subspan(first, count));
    const auto values = measure({inputs.potential, inputs.batches, inputs.plan, chains, &scratch}, &part);
    for (size_t i = 0; i < count; ++i) see(rows[first + i], values[i]);
  }
}

}  // namespace

int64_t FirstReportStep(int32_t index, int64_t num_parameters, Device device, int64_t training_steps) {
  constexpr int64_t kParameters = int64_t{1} << 20;  // in a network whose chains are all measured at once
  const int64_t groups = device.is_cuda() ? num_parameters / kParameters : 1;
  return index % std::clamp<int64_t>(groups, 1, std::max<int64_t>(1, training_steps));
}

ChainReporter::ChainReporter(const JobSpec* spec, const StepPlan* plan, Potential* potential,
                             const MinibatchPlan* batches, std::vector<int32_t>* evaluated)
    : spec_(spec),
      plan_(plan),
      potential_(potential),
      batches_(batches),
      evaluated_(evaluated),
      has_mobility_(Mobility(spec->sampler, 1).has_value()),
      has_bound_(HasStabilityBound(spec->sampler)) {}

bool ChainReporter::CycleIsMeasured(int64_t cycle) const {
  const int64_t length = plan_->steps_per_cycle, cycles = plan_->training_steps / length;
  return (cycles - 1 - cycle) % ((kStepsBetween + length - 1) / length) == 0;
}

bool ChainReporter::VarianceIsDue(int64_t t, int64_t first) const {
  if (!has_mobility_ || t == first) return has_mobility_;
  if (t >= plan_->training_steps || !plan_->CollectsAfter(t + 1)) return false;
  const int64_t length = plan_->steps_per_cycle, every = plan_->collect_every, end = (t / length + 1) * length;
  const int64_t begin = std::max(end - plan_->collect_window, plan_->burn_in_steps) / every + 1, last = end / every;
  return t + 1 == (begin + last) / 2 * every && CycleIsMeasured(t / length);
}

bool ChainReporter::CurvatureIsDue(int64_t t, int64_t first) const {
  if (!has_bound_ || t == first) return has_bound_;
  const int64_t length = plan_->steps_per_cycle;
  return t < plan_->training_steps && (t + 1) % length == 0 && CycleIsMeasured(t / length);
}

void ChainReporter::Measure(const std::vector<MeasuredRow>& rows, const std::vector<ChainStep>& chains,
                            const ThetaArena& theta) {
  std::vector<int64_t> of_variance, of_curvature;
  for (size_t row = 0; row < chains.size(); ++row) {
    if (!chains[row].active) continue;
    if (VarianceIsDue(chains[row].t, rows[row].first)) of_variance.push_back(static_cast<int64_t>(row));
    if (CurvatureIsDue(chains[row].t, rows[row].first)) of_curvature.push_back(static_cast<int64_t>(row));
  }
  const StepInputs inputs = {potential_, batches_, plan_, chains, nullptr};
  const auto report_of = [&](int64_t row) {
    std::optional<RunReport>& report = *rows[row].report;
    if (!report) report.emplace();
    report->step = chains[row].t;
    return &*report;
  };
  std::vector<int32_t> unread;
  std::vector<int32_t>& evaluated = evaluated_ != nullptr ? *evaluated_ : unread;
  const absl::Cleanup restore = [&evaluated, all = evaluated] { evaluated = all; };  // also if memory is short
  const auto about_to = [&](std::span<const int64_t> part) {
    evaluated.clear();
    for (const int64_t row : part) evaluated.push_back(rows[row].chain);
  };
  MeasureInParts(
      inputs, of_variance, kVarianceLabel, theta, about_to, MeasureGradientVariance,
      [&](int64_t row, double variance) { ReportNoise(chains[row], variance, theta.ReadRow(row), report_of(row)); });
  MeasureInParts(inputs, of_curvature, kCurvatureLabel, theta, about_to, MeasureCurvature,
                 [&](int64_t row, double curvature) {
                   ReportCurvature(chains[row], *rows[row].schedule, curvature, report_of(row));
                 });
}

void ChainReporter::ReportNoise(const ChainStep& chain, double variance, const std::vector<float>& theta,
                                RunReport* report) const {
  const SamplerSpec sampler = SamplerOf(chain);
  const double mobility = *Mobility(sampler, chain.step_size);
  report->step_size = chain.step_size;
  report->temperature = chain.temperature;
  report->gradient_variance.reset();
  report->effective_temperature.reset();
  report->noise_ulps = NoiseUlps(std::sqrt(2 * mobility * chain.temperature), *potential_->layout(), theta);
  if (chain.temperature == 0) report->noise_ulps.reset();
  if (!std::isfinite(variance)) return;
  report->gradient_variance = variance;
  const std::optional<double> heat = HeatOfNoise(sampler, chain.step_size);
  if (!heat) return;
  const auto* sgld = std::get_if<SgldSpec>(&sampler.kind);
  const double made_room_for = sgld != nullptr ? sgld->gradient_noise : 0;
  report->effective_temperature = std::max(chain.temperature - *heat * made_room_for, 0.0) + *heat * variance;
}

void ChainReporter::ReportCurvature(const ChainStep& chain, const StepSizeSchedule& schedule, double curvature,
                                    RunReport* report) const {
  report->curvature.reset();
  report->stable_below.reset();
  const bool restarts = chain.t > 0 && chain.t + 1 < plan_->training_steps;
  report->tested_step_size = restarts ? schedule.StepSize(chain.t + 1) : chain.step_size;
  if (!std::isfinite(curvature)) return;
  report->curvature = curvature;
  report->stable_below =
      StableBelow(SamplerOf(chain), curvature, chain.own.prior_precision.value_or(potential_->prior_precision()));
}

SamplerSpec ChainReporter::SamplerOf(const ChainStep& chain) const {
  SamplerSpec sampler = spec_->sampler;
  std::visit(
      [&](auto& kind) {
        if constexpr (requires { kind.eta; }) kind.eta = chain.own.eta.value_or(kind.eta);
        if constexpr (requires { kind.friction; }) kind.friction = chain.own.friction.value_or(kind.friction);
      },
      sampler.kind);
  return sampler;
}

std::optional<double> NoiseUlps(double noise, const Layout& layout, const std::vector<float>& theta) {
  std::optional<double> least;
  for (const TensorSpan& span : layout.spans()) {
    double squares = 0;
    for (int64_t p = span.first; p < span.first + span.size; ++p) squares += static_cast<double>(theta[p]) * theta[p];
    const double rms = std::sqrt(squares / static_cast<double>(span.size));
    if (!(rms > 0) || !std::isfinite(rms)) continue;
    const double ulps = noise / std::ldexp(1.0, std::ilogb(rms) - 23);
    least = std::min(least.value_or(ulps), ulps);
  }
  return least;
}

}  // namespace chainfleet
