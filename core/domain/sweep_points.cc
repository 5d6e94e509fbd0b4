#include "core/domain/sweep_points.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

using Violations = std::vector<FieldViolation>;

std::string PutInSchedule(StepScale scale, double value, ScheduleSpec* schedule) {
  if (schedule->scale != scale) {
    return scale == StepScale::kStepSize ? "the job has a learning_rate: sweep that"
                                         : "the job has a step_size: sweep that";
  }
  std::visit(
      [value](auto& kind) {
        if constexpr (requires { kind.initial; }) {
          kind.initial = value;
        } else {
          kind.value = value;
        }
      },
      schedule->kind);
  return "";
}

std::string PutInPrior(double value, JobSpec* spec) {
  if (auto* bsam = std::get_if<BsamSpec>(&spec->sampler.kind)) {
    bsam->prior_precision = value;
    return "";
  }
  auto* gaussian = std::get_if<GaussianPrior>(&spec->prior.kind);
  if (gaussian == nullptr || !gaussian->layers.empty()) return "the prior is not a Gaussian of one precision";
  gaussian->precision = value;
  return "";
}

std::string PutInSampler(const std::string& name, double value, SamplerSpec* sampler) {
  bool found = false;
  std::visit(
      [&](auto& kind) {
        kind.Fields(kind, [&](const char* field, auto& number, auto&&...) {
          if constexpr (std::is_same_v<std::decay_t<decltype(number)>, double>) {
            if (name != field) return;
            number = value;
            found = true;
          }
        });
      },
      sampler->kind);
  return found ? "" : absl::StrCat("the sampler ", sampler->name(), " has no ", name);
}

// Sets one number. Returns an error text if the job has no such number.
std::string Put(const std::string& name, double value, JobSpec* spec) {
  if (name == "step_size") return PutInSchedule(StepScale::kStepSize, value, &spec->schedule);
  if (name == "learning_rate") return PutInSchedule(StepScale::kLearningRate, value, &spec->schedule);
  if (name == "temperature") {
    spec->temperature = value;
    return "";
  }
  if (name == "prior_precision") return PutInPrior(value, spec);
  return PutInSampler(name, value, &spec->sampler);
}

JobSpec WithoutSweep(const JobSpec& spec) {
  JobSpec one = spec;
  one.sweep = {};
  return one;
}

// Checks one list of values: each value alone, together with the rest of the job.
void ValidateAxis(const JobSpec& base, const SweepAxis& axis, Violations* violations) {
  JobSpec one = base;  // each value replaces the previous one
  for (size_t i = 0; i < axis.values.size(); ++i) {
    const std::string path = absl::StrCat("sweep.", axis.name, "[", i, "]");
    if (const std::string lacks = Put(axis.name, axis.values[i], &one); !lacks.empty()) {
      violations->push_back({absl::StrCat("sweep.", axis.name), lacks});
      return;
    }
    for (const FieldViolation& violation : ValidateBesidesModel(one, /*valid_model=*/true)) {
      violations->push_back({path, absl::StrCat(violation.path, " ", violation.message)});
    }
    const auto here = axis.values.begin() + static_cast<int64_t>(i);
    if (std::find(axis.values.begin(), here, *here) != here) {
      violations->push_back({path, absl::StrCat(*here, " is given twice")});
    }
  }
}

}  // namespace

int32_t NumChains(const JobSpec& spec) { return spec.chains * NumPoints(spec.sweep); }

int32_t PointOf(const JobSpec& spec, int32_t chain) { return spec.sweep.any() ? chain / spec.chains : 0; }

int64_t NumSuperchains(const JobSpec& spec, int64_t num_parameters) {
  const int64_t starts = NumStartPoints(spec.init, num_parameters);
  return starts >= 2 && spec.chains >= 2 * starts ? starts : 0;
}

int64_t NumSuperchains(const JobPlan& plan) {
  const Dataset data = plan.dataset.value_or(Dataset());
  const auto parameters = InferParameters(plan.spec.model, data.input_shape, NumClasses(data.targets), StoredOf(plan));
  return NumSuperchains(plan.spec, parameters.ok() ? NumParameters(*parameters) : 0);
}

JobSpec SpecAt(const JobSpec& spec, int32_t point) {
  JobSpec one = WithoutSweep(spec);
  const std::vector<SweepAxis> axes = AxesOf(spec.sweep);
  const std::vector<double> values = ValuesAt(spec.sweep, point);
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::string lacks = Put(axes[i].name, values[i], &one);
    CHAINFLEET_CHECK(lacks.empty()) << "sweep." << axes[i].name << " of a job that was not validated: " << lacks;
  }
  return one;
}

JobSpec WithoutContents(JobSpec spec) {
  spec.model = {};
  spec.init = {};
  return spec;
}

std::vector<FieldViolation> ValidateSweep(const JobSpec& spec) {
  if (!spec.sweep.any()) return {};
  if (NumPoints(spec.sweep) > limits::kMaxSweepPoints) {
    return {{"sweep", absl::StrCat("has more than ", limits::kMaxSweepPoints, " points: take fewer values")}};
  }
  if (NumChains(spec) > limits::kMaxChainsPerJob) {
    return {{"sweep", absl::StrCat(NumPoints(spec.sweep), " points of ", spec.chains, " chains: at most ",
                                   limits::kMaxChainsPerJob, " chains are allowed in a job")}};
  }
  Violations violations;
  for (const SweepAxis& axis : AxesOf(spec.sweep)) ValidateAxis(WithoutSweep(spec), axis, &violations);
  return violations;
}

}  // namespace chainfleet
