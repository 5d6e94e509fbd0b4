#include "worker/numerics/batch/start_point.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/domain/posthoc_rules.h"
#include "core/store/draw_codec/weights_file.h"
#include "worker/numerics/models/model_file.h"

namespace chainfleet {
namespace {

// Counters of kInit: the uniform start has step 0.
constexpr uint64_t kPerturbation = 1;

std::vector<float> RandomStart(const Layout& layout, RngKey key) {
  std::vector<float> theta(layout.num_parameters(), 0.0f);
  for (size_t k = 0; k < layout.parameters().size(); ++k) {
    const ParameterShape& parameter = layout.parameters()[k];
    const TensorSpan& span = layout.spans()[k];
    if (parameter.fan_in == 0) {
      std::fill_n(theta.begin() + span.first, span.size, parameter.initial);
      continue;
    }
    const float bound = 1 / std::sqrt(static_cast<float>(parameter.fan_in));
    for (int64_t p = span.first; p < span.first + span.size; ++p) {
      const int64_t r = p % 64;
      const PhiloxBlock block = RandomBlock(key, RngStream::kInit, 0, static_cast<uint32_t>(p / 64 * 16 + r % 16));
      theta[p] = bound * (2 * UniformFloat(block.word[r / 16]) - 1);
    }
  }
  return theta;
}

absl::Status ReplaceByStored(const Layout& layout, std::vector<float>* theta) {
  for (const ParameterShape& parameter : layout.parameters()) {
    if (parameter.stored == nullptr) continue;
    const float *const first = parameter.stored.get(), *const end = first + NumValues(parameter.shape);
    if (!std::all_of(first, end, [](float value) { return std::isfinite(value); }))
      return absl::InvalidArgumentError(parameter.name + " has a value that is not finite in the model's file");
    std::copy(first, end, theta->begin() + parameter.offset);
  }
  return absl::OkStatus();
}

// Copies a tensor's numbers, which may lie unaligned in the file. Returns false if one is not finite.
template <typename T>
bool CopyAs(const TensorView& tensor, float* to) {
  bool finite = true;
  for (int64_t i = 0; i < tensor.size_bytes / ItemBytes(tensor.type); ++i) {
    T value;
    std::memcpy(&value, tensor.data + i * sizeof value, sizeof value);
    to[i] = static_cast<float>(value);
    finite &= std::isfinite(to[i]);
  }
  return finite;
}

bool Copy(const TensorView& tensor, float* to) {
  if (tensor.type == TensorType::kFloat16) return CopyAs<c10::Half>(tensor, to);
  if (tensor.type == TensorType::kBfloat16) return CopyAs<c10::BFloat16>(tensor, to);
  return tensor.type == TensorType::kFloat64 ? CopyAs<double>(tensor, to) : CopyAs<float>(tensor, to);
}

at::ScalarType PrecisionOf(TensorType type) {
  if (type == TensorType::kFloat16) return at::kHalf;
  return type == TensorType::kBfloat16 ? at::kBFloat16 : at::kFloat;
}

// True if `given` has the values of `constant`, in the precision of the file.
bool IsSame(const TensorView& given, const at::Tensor& constant) {
  if (given.type < TensorType::kFloat16 || given.shape != constant.sizes().vec()) return false;
  const at::Tensor values = at::empty(constant.sizes(), at::kFloat);
  Copy(given, values.mutable_data_ptr<float>());
  return values.equal(constant.to(PrecisionOf(given.type)).to(at::kFloat));
}

// Statistics of batch norm in training mode are no constants: each draw has its own. `file` has one draw.
absl::Status CheckConstants(const Layout& layout, const ExportedModel& model, const Safetensors& file) {
  const ExportedProgram& program = model.program;
  for (int32_t i = 0; i < program.num_tensors(); ++i) {
    const std::string& name = program.tensors[i].name;
    const TensorView* given = file.Find(name);
    if (given == nullptr || !model.tensors[i].is_floating_point() || std::ranges::count(program.statistics, i) > 0 ||
        std::ranges::count(layout.parameters(), name, &ParameterShape::name) > 0 || IsSame(*given, model.tensors[i])) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the file has other values of ", name,
                     " than the model's file, whose values all chains use: export the network with the values of the "
                     "file, in training mode if it is a statistic of batch norm, or leave the tensor out"));
  }
  return absl::OkStatus();
}

absl::Status ReplaceByFile(const Layout& layout, const std::string* weights, const ModelFile* model,
                           std::vector<float>* theta) {
  if (weights == nullptr) return absl::InvalidArgumentError("the chain comes without the file");
  CHAINFLEET_ASSIGN_OR_RETURN(const Safetensors file, ReadWeights(*weights));
  if (const std::string why = WhyNoStart(SignaturesOf(file), layout.parameters()); !why.empty())
    return absl::InvalidArgumentError("the file " + why);
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t draws, NumDrawsIn(SignaturesOf(file)));
  const auto network = [&](int64_t draw) { return draws > 0 ? DrawIn(file, DrawKind::kTheta, draw) : file; };
  const auto* exported = model == nullptr ? nullptr : std::get_if<ExportedModel>(&model->content);
  for (int64_t draw = 0; exported != nullptr && draw < std::max<int64_t>(draws, 1); ++draw) {
    CHAINFLEET_RETURN_IF_ERROR(CheckConstants(layout, *exported, network(draw)));
  }
  const Safetensors start = network(draws - 1);
  for (const ParameterShape& parameter : layout.parameters()) {
    const TensorView* tensor = start.Find(parameter.name);
    if (tensor != nullptr && !Copy(*tensor, theta->data() + parameter.offset))
      return absl::InvalidArgumentError(parameter.name + " has a value that is not finite as a float32");
  }
  return absl::OkStatus();
}

std::vector<float> RowOf(const std::vector<double>& points, int64_t num_parameters, int32_t index) {
  if (points.size() == 1) return std::vector<float>(num_parameters, static_cast<float>(points.front()));
  const int64_t rows = static_cast<int64_t>(points.size()) / num_parameters;
  const auto row = points.begin() + index % rows * num_parameters;
  return {row, row + num_parameters};
}

}  // namespace

absl::StatusOr<std::vector<float>> StartOfChain(const Layout& layout, const InitSpec& init, int32_t index, RngKey key,
                                                const std::string* weights, const ModelFile* model) {
  const int64_t d = layout.num_parameters();
  std::vector<float> theta = init.theta.empty() ? RandomStart(layout, key) : RowOf(init.theta, d, index);
  if (init.model) CHAINFLEET_RETURN_IF_ERROR(Annotate(ReplaceByStored(layout, &theta), "init.model"));
  if (!init.weights.empty()) {
    const std::string& name = init.weights[index % init.weights.size()];
    CHAINFLEET_RETURN_IF_ERROR(Annotate(ReplaceByFile(layout, weights, model, &theta), "init.weights: model " + name));
  }
  for (int64_t p = 0; p < d && init.perturb > 0; ++p) {
    const double noise = NormalDouble(key, RngStream::kInit, kPerturbation, static_cast<uint32_t>(p));
    theta[p] = static_cast<float>(theta[p] + init.perturb * noise);
  }
  return theta;
}

absl::StatusOr<StoredDraws> StoredDraws::Read(const std::string* file, const JobSpec& spec,
                                              const std::vector<ParameterShape>& tensors, int64_t num_steps) {
  StoredDraws draws;
  const auto refused = [](const std::string& why) {
    return absl::InvalidArgumentError("init.weights: the file " + why);
  };
  if (file == nullptr) return draws;
  absl::StatusOr<Safetensors> stored = ReadWeights(*file);
  if (!stored.ok()) return draws;  // StartOfChain names the file
  draws.file_ = *std::move(stored);
  CHAINFLEET_ASSIGN_OR_RETURN(draws.size_, NumDrawsIn(SignaturesOf(draws.file_)));
  if (draws.size_ == 0) return draws;
  if (spec.sampler.is_metropolis()) return refused("has draws: they need a sampler such as sgd, not a Metropolis one");
  if (draws.size_ > num_steps && !AveragesSnapshots(spec.sampler)) {
    return refused(
        absl::StrCat("has ", draws.size_, " draws, the job ", num_steps, " steps: set num_steps to the draws"));
  }
  for (const DrawKind kind : KindsOf(spec)) {
    if (const std::string why = draws.WhyNot(kind, tensors); !why.empty()) return refused(why);
  }
  const bool whole = draws.ReadWeightsOfDraws();
  if (whole && AveragesSnapshots(spec.sampler) &&
      std::ranges::adjacent_find(draws.weights_, std::not_equal_to()) != draws.weights_.end()) {
    return refused("has draws of different weights, which " + spec.sampler.name() +
                   " does not know: export the job without --weighted");
  }
  if (whole) return draws;
  return refused("has weights that are not one number above 0 for each draw: export the job again");
}

std::string StoredDraws::WhyNot(DrawKind kind, const std::vector<ParameterShape>& tensors) const {
  for (const ParameterShape& tensor : tensors) {
    const std::string name = absl::StrCat(ToString(kind), "/", tensor.name);
    std::vector<int64_t> shape = tensor.shape;
    shape.insert(shape.begin(), size_);
    const TensorView* const found = file_.Find(name);
    if (found == nullptr && file_.Find(absl::StrCat("theta/", tensor.name)) == nullptr) continue;
    if (found == nullptr) return absl::StrCat("lacks ", name, ": export a job that keeps it");
    if (found->shape != shape || found->type < TensorType::kFloat16) {
      return absl::StrCat("has ", name, " with other shapes than ", size_,
                          " draws of this network: export the job again");
    }
    std::vector<float> values(static_cast<size_t>(NumValues(shape)));
    if (!Copy(*found, values.data())) return absl::StrCat("has a value of ", name, " that is not finite as a float32");
  }
  return "";
}

bool StoredDraws::ReadWeightsOfDraws() {
  weights_.assign(static_cast<size_t>(size_), 1);
  const TensorView* const weights = file_.Find("weights");
  if (weights == nullptr) return true;
  if (weights->type != TensorType::kFloat64 || weights->shape != std::vector<int64_t>{size_}) return false;
  std::memcpy(weights_.data(), weights->data, static_cast<size_t>(weights->size_bytes));
  return std::ranges::all_of(weights_, [](double weight) { return std::isfinite(weight) && weight > 0; });
}

void StoredDraws::Replace(const std::vector<DrawKind>& kinds, const std::vector<ParameterShape>& tensors,
                          Draw* draw) const {
  if (size_ == 0 || draw->step > size_) return;
  const int64_t index = draw->step - 1;
  draw->weight = weights_[static_cast<size_t>(index)];
  for (size_t k = 0; k < kinds.size(); ++k) {
    const Safetensors stored = DrawIn(file_, kinds[k], index);
    int64_t offset = 0;
    for (const ParameterShape& tensor : tensors) {
      const TensorView* const found = stored.Find(tensor.name);
      if (found != nullptr) Copy(*found, draw->theta[k].data() + offset);
      offset += NumValues(tensor.shape);
    }
  }
}

void StartRow(const Kernel& kernel, const std::vector<float>& start, const StoredDraws& snapshots, int64_t row,
              SamplerState* state) {
  state->theta().WriteRow(row, start);
  std::visit([&](const auto& of_kind) { of_kind.InitRow(state, row); }, kernel);
  const auto* const swag = std::get_if<Swag>(&kernel);
  if (swag == nullptr) return;
  Draw draw{.theta = {start}};
  for (draw.step = 1; draw.step <= snapshots.size(); ++draw.step) {
    snapshots.Replace({DrawKind::kTheta}, state->theta().layout().parameters(), &draw);
    state->theta().WriteRow(row, draw.theta[0]);
    swag->TakeSnapshot(row, state);
  }
  state->theta().WriteRow(row, start);
}

}  // namespace chainfleet
