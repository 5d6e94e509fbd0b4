#include "worker/numerics/batch/simulated_data.h"

#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "core/base/mutex.h"
#include "core/domain/prediction.h"
#include "core/domain/sweep_points.h"
#include "worker/numerics/potentials/prior_potential.h"
#include "worker/numerics/predict/predictor.h"

namespace chainfleet {
namespace {

// Counters of kTruth.
constexpr uint64_t kOfTheta = 0, kOfTargets = 1;

RngKey KeyOf(const JobSpec& spec, int32_t chain) { return Fold(RngKey{spec.seed}, static_cast<uint64_t>(chain)); }

struct Uniforms {
  double first, second;
};

Uniforms UniformsAt(RngKey key, uint64_t step, uint32_t index) {
  const PhiloxBlock b = RandomBlock(key, RngStream::kTruth, step, index);
  return {UniformDouble(b.word[0], b.word[1]), UniformDouble(b.word[2], b.word[3])};
}

double DrawFrom(const NormalDensity& density, RngKey key, uint32_t index) {
  return NormalDouble(key, RngStream::kTruth, kOfTheta, index) / std::sqrt(density.precision);
}

double DrawFrom(const LaplacePrior& density, RngKey key, uint32_t index) {
  const auto [u, sign] = UniformsAt(key, kOfTheta, index);
  return (sign < 0.5 ? density.scale : -density.scale) * std::log(u);
}

// Bailey, "Polar generation of random variates with the t-distribution", Mathematics of Computation 62 (1994).
double DrawFrom(const StudentTPrior& density, RngKey key, uint32_t index) {
  const auto [u, turn] = UniformsAt(key, kOfTheta, index);
  const double nu = density.degrees_of_freedom;
  return density.scale * std::sqrt(nu * std::expm1(-2 / nu * std::log(u))) * std::cos(2 * std::numbers::pi * turn);
}

void AppendTargets(const ClassSums& sums, RngKey key, std::vector<int32_t>* labels) {
  for (size_t row = 0; row < sums.sum_wh.size(); ++row) {
    double left = UniformsAt(key, kOfTargets, static_cast<uint32_t>(row)).first;
    const auto p = sums.sum_wp.begin() + static_cast<int64_t>(row) * sums.num_classes;
    int32_t label = 0;
    while (label + 1 < sums.num_classes && (left -= p[label]) >= 0) ++label;
    labels->push_back(label);
  }
}

void AppendTargets(const NumberSums& sums, RngKey key, std::vector<float>* numbers) {
  for (size_t row = 0; row < sums.sum_wm.size(); ++row) {
    const double z = NormalDouble(key, RngStream::kTruth, kOfTargets, static_cast<uint32_t>(row));
    numbers->push_back(static_cast<float>(sums.sum_wm[row] + std::sqrt(sums.sum_wv[row]) * z));
  }
}

}  // namespace

std::vector<float> DrawTruth(const JobSpec& spec, const Layout& layout, int32_t chain) {
  const RngKey key = KeyOf(spec, chain);
  const auto densities = DensitiesOf(spec.prior, layout);
  std::vector<float> theta(layout.num_parameters());
  for (size_t k = 0; k < densities.size(); ++k) {
    const TensorSpan& span = layout.spans()[k];
    for (int64_t p = span.first; p < span.first + span.size; ++p) {
      const auto draw = [&](const auto& density) { return DrawFrom(density, key, static_cast<uint32_t>(p)); };
      theta[p] = static_cast<float>(std::visit(draw, densities[k]));
    }
  }
  return theta;
}

absl::StatusOr<std::shared_ptr<const ResidentDataset>> SimulateTargets(const JobPlan& plan, const Potential& potential,
                                                                       const ResidentDataset* dataset,
                                                                       std::shared_ptr<const ModelFile> module) {
  // The batches of a job need the same data, one after another.
  struct Newest {
    Mutex mutex;
    std::string job CHAINFLEET_GUARDED_BY(mutex);
    JobSpec spec CHAINFLEET_GUARDED_BY(mutex);
    std::shared_ptr<const ResidentDataset> data CHAINFLEET_GUARDED_BY(mutex);
  };
  static auto* const newest = new Newest;
  {
    MutexLock lock(&newest->mutex);
    if (newest->data != nullptr && newest->job == plan.job && newest->spec == plan.spec) return newest->data;
  }
  if (dataset == nullptr || !potential.statistics().empty()) {
    return absl::InvalidArgumentError("job " + plan.job +
                                      ": kind sbc needs a model of targets that does not normalise by the batch");
  }
  const Dataset& data = dataset->description();
  auto model = std::make_shared<PredictPlan>(
      PredictPlan{plan.job, plan.spec.model, data.input_shape, data.targets, plan.normalisation, plan.target_units});
  CHAINFLEET_ASSIGN_OR_RETURN(const auto predictor, Predictor::Create(std::move(model), "cpu", std::move(module)));
  auto targets = EmptyOf<TargetValues>(data.targets);
  for (int32_t chain = 0; chain < NumChains(plan.spec); ++chain) {
    auto theta = std::make_shared<const std::vector<float>>(DrawTruth(plan.spec, *potential.layout(), chain));
    const DrawStack stack = {{plan.job, chain}, DrawKind::kTheta, {1}, {std::move(theta)}};
    CHAINFLEET_ASSIGN_OR_RETURN(const auto sums, predictor->PredictRows({stack}, *dataset, 0, data.num_rows, false));
    const RngKey key = KeyOf(plan.spec, chain);
    if (auto* labels = std::get_if<std::vector<int32_t>>(&targets)) {
      AppendTargets(sums.front().classes(), key, labels);
    } else {
      AppendTargets(sums.front().numbers(), key, &std::get<std::vector<float>>(targets));
    }
  }
  MutexLock lock(&newest->mutex);
  newest->job = plan.job;
  newest->spec = plan.spec;
  return newest->data = ResidentDataset::WithTargets(*dataset, std::move(targets));
}

}  // namespace chainfleet
