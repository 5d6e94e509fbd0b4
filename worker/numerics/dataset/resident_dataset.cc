#include "worker/numerics/dataset/resident_dataset.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/domain/parameter_shape.h"
#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {
namespace {

absl::Status Mismatch(const DatasetShard& shard, const std::string& what) {
  return absl::DataLossError(absl::StrCat("data set shard ", shard.object.name, ": ", what,
                                          "; its bytes are not those the data set describes: store it again"));
}

// Returns the tensor `name` of [shape...] with `type`, or an error that says what is wrong with it.
absl::StatusOr<const TensorView*> FindTensor(const DatasetShard& shard, const Safetensors& file, const char* name,
                                             TensorType type, const std::vector<int64_t>& shape) {
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr) return Mismatch(shard, absl::StrCat("has no tensor \"", name, "\""));
  if (tensor->type != type || tensor->shape != shape) {
    return Mismatch(shard, absl::StrCat("\"", name, "\" has another type or shape than described"));
  }
  return tensor;
}

// Appends the targets of the shard's rows.
absl::Status Append(const DatasetShard& shard, const Safetensors& file, TargetValues* targets) {
  const bool numbers = std::holds_alternative<std::vector<float>>(*targets);
  CHAINFLEET_ASSIGN_OR_RETURN(const TensorView* tensor,
                              FindTensor(shard, file, numbers ? "targets" : "labels",
                                         numbers ? TensorType::kFloat32 : TensorType::kInt32, {shard.num_rows}));
  const auto append = [&](auto& values) {
    values.resize(static_cast<size_t>(shard.first_row + shard.num_rows));
    std::memcpy(values.data() + shard.first_row, tensor->data, tensor->size_bytes);
  };
  std::visit(append, *targets);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ResidentDataset>> ResidentDataset::Create(
    const Dataset& dataset, const std::vector<std::string>& shard_bytes) {
  if (shard_bytes.size() != dataset.shards.size()) {
    return absl::DataLossError(absl::StrCat("data set ", dataset.name, " has ", dataset.shards.size(), " shards, ",
                                            shard_bytes.size(), " were given"));
  }
  auto resident = std::make_shared<ResidentDataset>();
  resident->description_ = dataset;
  resident->targets_ = EmptyOf<TargetValues>(dataset.targets);
  resident->row_size_ = NumValues(dataset.input_shape);
  const TensorType type = dataset.input_type == InputType::kUint8 ? TensorType::kUint8 : TensorType::kFloat32;
  resident->input_bytes_.reserve(dataset.num_rows * InputBytes(dataset));
  int64_t rows = 0;
  for (size_t i = 0; i < shard_bytes.size(); ++i) {
    const DatasetShard& shard = dataset.shards[i];
    if (shard.first_row != rows) return Mismatch(shard, absl::StrCat("does not start at row ", rows));
    const absl::StatusOr<Safetensors> file = ParseSafetensors(shard_bytes[i]);
    if (!file.ok()) return Mismatch(shard, std::string(file.status().message()));
    std::vector<int64_t> shape = {shard.num_rows};
    shape.insert(shape.end(), dataset.input_shape.begin(), dataset.input_shape.end());
    CHAINFLEET_ASSIGN_OR_RETURN(const TensorView* inputs, FindTensor(shard, *file, "inputs", type, shape));
    CHAINFLEET_RETURN_IF_ERROR(Append(shard, *file, &resident->targets_));
    resident->input_bytes_.append(inputs->data, inputs->size_bytes);
    rows += shard.num_rows;
  }
  if (rows != dataset.num_rows) {
    return absl::DataLossError(
        absl::StrCat("data set ", dataset.name, " describes ", dataset.num_rows, " rows, its shards hold ", rows));
  }
  const int64_t classes = NumClasses(dataset.targets);
  const auto* const labels = std::get_if<std::vector<int32_t>>(&resident->targets_);
  if (labels != nullptr && std::ranges::any_of(*labels, [&](int32_t l) { return l < 0 || l >= classes; })) {
    return absl::DataLossError(
        absl::StrCat("data set ", dataset.name, " has labels outside its ", classes, " classes"));
  }
  return std::shared_ptr<const ResidentDataset>(std::move(resident));
}

std::shared_ptr<const ResidentDataset> ResidentDataset::WithTargets(const ResidentDataset& data, TargetValues targets) {
  auto blocks = std::make_shared<ResidentDataset>(data);
  blocks->targets_ = std::move(targets);
  const size_t count = blocks->stored_rows() / data.stored_rows();
  blocks->input_bytes_.reserve(count * data.input_bytes_.size());
  for (size_t block = 1; block < count; ++block) blocks->input_bytes_ += data.input_bytes_;
  return blocks;
}

int64_t ResidentDataset::stored_rows() const {
  return std::visit([](const auto& values) { return std::ssize(values); }, targets_);
}

std::vector<float> ResidentDataset::TargetNumbers(const TargetUnits& units) const {
  if (const auto* labels = std::get_if<std::vector<int32_t>>(&targets_)) return {labels->begin(), labels->end()};
  const auto& targets = std::get<std::vector<float>>(targets_);
  if (units == TargetUnits()) return targets;
  std::vector<float> numbers;
  for (const float target : targets) numbers.push_back(static_cast<float>((target - units.mean) / units.stddev));
  return numbers;
}

}  // namespace chainfleet
