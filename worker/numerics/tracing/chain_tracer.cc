#include "worker/numerics/tracing/chain_tracer.h"

#include <ATen/ops/linalg_vector_norm.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/domain/chain_trace.h"
#include "worker/numerics/arena/tensor_view.h"

namespace chainfleet {
namespace {

constexpr int64_t kProbes = 4;

// The middle of equal parts of the data set, because files are often sorted by class.
std::vector<int64_t> ProbesOf(const JobSpec& spec, int64_t num_examples) {
  std::vector<int64_t> rows;
  const int64_t count = spec.model.has_data() ? std::min(kProbes, num_examples) : 0;
  for (int64_t i = 0; i < count; ++i) rows.push_back((2 * i + 1) * num_examples / (2 * count));
  return rows;
}

// Calibration ranks the true theta among draws of its posterior. theta_a does not have that law: given the same targets
// its variance is larger by eta T.
std::vector<DrawKind> TracedKinds(const JobSpec& spec) {
  if (spec.kind == JobKind::kSbc) return {DrawKind::kTheta};
  return KindsOf(spec);
}

// ".weights[2]" for a value of a tensor, ".intercept" for a tensor of one value, "[2]" for the tensor "theta" of a
// density; in the order of ThetaArena::ReadRow. None for a network, and for a potential with too many.
std::vector<std::string> TracedParameters(const JobSpec& spec, const Layout& layout) {
  std::vector<std::string> names;
  if (spec.model.is_network() || layout.num_parameters() > kMostTracedParameters) return names;
  for (const ParameterShape& parameter : layout.parameters()) {
    const int64_t count = NumValues(parameter.shape);
    const std::string name = parameter.name == "theta" ? "" : "." + parameter.name;
    for (int64_t value = 0; value < count; ++value) {
      std::vector<int64_t> index(parameter.shape.size());
      for (size_t axis = index.size(), rest = value; axis-- > 0; rest /= parameter.shape[axis]) {
        index[axis] = static_cast<int64_t>(rest) % parameter.shape[axis];
      }
      names.push_back(count == 1 && !name.empty() ? name : absl::StrCat(name, "[", absl::StrJoin(index, ","), "]"));
    }
  }
  return names;
}

// The norm of each row, whose padding is zero. On the CPU a loop: for small potentials a LibTorch call costs more.
std::vector<double> NormsOf(const ThetaArena& theta) {
  std::vector<double> norms;
  if (theta.device().is_cuda()) {
    const at::Tensor on_device = at::linalg_vector_norm(RowsView(theta), 2, at::IntArrayRef{1}).cpu();
    norms.assign(on_device.const_data_ptr<float>(), on_device.const_data_ptr<float>() + theta.rows());
    return norms;
  }
  norms.reserve(static_cast<size_t>(theta.rows()));
  for (int64_t row = 0; row < theta.rows(); ++row) {
    std::array<double, Layout::kAlignmentBytes / sizeof(float)> sums{};  // added side by side
    for (const float* x = theta.row(row); x < theta.row(row) + theta.row_stride(); x += sums.size()) {
      for (size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += double{x[lane]} * double{x[lane]};
    }
    norms.push_back(std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0)));
  }
  return norms;
}

}  // namespace

ChainTracer::ChainTracer(const JobSpec& spec, bool has_labels, Potential* potential)
    : potential_(potential),
      kinds_(TracedKinds(spec)),
      has_energy_(spec.kind == JobKind::kPosterior),
      has_anchor_(has_energy_ && kinds_.size() > 1),
      has_uncertainty_(has_energy_ && std::holds_alternative<GradientUncertaintySpec>(spec.sampler.kind)),
      are_probabilities_(spec.model.is_network() && has_labels),
      probes_(ProbesOf(spec, potential->num_examples())),
      parameters_(TracedParameters(spec, *potential->layout())) {
  const char* const at_probe = are_probabilities_        ? kProbabilityTrace
                               : spec.model.is_network() ? kLogDensityTrace
                                                         : ".log_likelihood[";
  if (has_energy_) quantities_.push_back("energy");
  if (has_anchor_) quantities_.push_back("anchor_distance");
  if (has_uncertainty_) quantities_.push_back("gradient_uncertainty");
  for (const DrawKind kind : kinds_) {
    quantities_.push_back(absl::StrCat(ToString(kind), ".norm"));
    for (const int64_t row : probes_) {
      quantities_.push_back(absl::StrCat(ToString(kind), at_probe, row, "]"));
    }
    for (const std::string& name : parameters_) quantities_.push_back(ToString(kind) + name);
  }
}

absl::StatusOr<std::vector<std::vector<double>>> ChainTracer::Trace(const std::vector<StepInfo>& info,
                                                                    const std::vector<const ThetaArena*>& kinds) {
  std::vector<std::vector<double>> values(info.size());
  for (size_t row = 0; row < info.size(); ++row) {
    values[row].reserve(quantities_.size());
    if (has_energy_) values[row].push_back(info[row].energy);
    if (has_anchor_) values[row].push_back(info[row].anchor_distance);
    if (has_uncertainty_) values[row].push_back(info[row].gradient_uncertainty);
  }
  const size_t n = probes_.size();
  std::vector<int64_t> ids;
  for (size_t row = 0; row < info.size(); ++row) ids.insert(ids.end(), probes_.begin(), probes_.end());
  std::vector<double> losses(ids.size());
  for (const ThetaArena* theta : kinds) {
    const std::vector<double> norms = NormsOf(*theta);
    if (n > 0) potential_->Losses(*theta, {.ids = ids.data(), .size = static_cast<int64_t>(n)}, losses.data());
    for (size_t row = 0; row < info.size(); ++row) {
      values[row].push_back(norms[row]);
      for (size_t i = 0; i < n; ++i) {
        const double log_density = -losses[row * n + i];
        values[row].push_back(are_probabilities_ ? std::exp(log_density) : log_density);
      }
      if (parameters_.empty()) continue;
      const std::vector<float> parameters = theta->ReadRow(static_cast<int64_t>(row));
      values[row].insert(values[row].end(), parameters.begin(), parameters.end());
    }
  }
  return values;
}

absl::StatusOr<std::vector<double>> ChainTracer::ValuesAt(const std::vector<float>& theta, Device device) {
  ThetaArena row(potential_->layout(), device);
  row.AddRow();
  row.WriteRow(0, theta);
  CHAINFLEET_ASSIGN_OR_RETURN(const auto values,
                              Trace({StepInfo()}, std::vector<const ThetaArena*>(kinds_.size(), &row)));
  return values.front();
}

}  // namespace chainfleet
