#include "worker/numerics/dataset/resident_dataset.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "absl/strings/str_cat.h"
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

// Appends the shard's tensor `name` [rows] to `values`.
template <typename T>
absl::Status Append(const DatasetShard& shard, const Safetensors& file, const char* name, TensorType type,
                    std::vector<T>* values) {
  CHAINFLEET_ASSIGN_OR_RETURN(const TensorView* tensor, FindTensor(shard, file, name, type, {shard.num_rows}));
  const size_t rows = values->size();
  values->resize(rows + static_cast<size_t>(shard.num_rows));
  std::memcpy(values->data() + rows, tensor->data, tensor->size_bytes);
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
  resident->row_size_ =
      std::accumulate(dataset.input_shape.begin(), dataset.input_shape.end(), int64_t{1}, std::multiplies<>());
  const TensorType type = dataset.input_type == InputType::kUint8 ? TensorType::kUint8 : TensorType::kFloat32;
  const int64_t row_bytes = resident->row_size_ * ItemBytes(type);
  resident->input_bytes_.reserve(dataset.num_rows * row_bytes);
  int64_t rows = 0;
  for (size_t i = 0; i < shard_bytes.size(); ++i) {
    const DatasetShard& shard = dataset.shards[i];
    if (shard.first_row != rows) return Mismatch(shard, absl::StrCat("does not start at row ", rows));
    const absl::StatusOr<Safetensors> file = ParseSafetensors(shard_bytes[i]);
    if (!file.ok()) return Mismatch(shard, std::string(file.status().message()));
    std::vector<int64_t> shape = {shard.num_rows};
    shape.insert(shape.end(), dataset.input_shape.begin(), dataset.input_shape.end());
    CHAINFLEET_ASSIGN_OR_RETURN(const TensorView* inputs, FindTensor(shard, *file, "inputs", type, shape));
    if (dataset.target_type == TargetType::kFloat32) {
      CHAINFLEET_RETURN_IF_ERROR(Append(shard, *file, "targets", TensorType::kFloat32, &resident->targets_));
    } else {
      CHAINFLEET_RETURN_IF_ERROR(Append(shard, *file, "labels", TensorType::kInt32, &resident->labels_));
    }
    resident->input_bytes_.append(inputs->data, inputs->size_bytes);
    rows += shard.num_rows;
  }
  if (rows != dataset.num_rows) {
    return absl::DataLossError(
        absl::StrCat("data set ", dataset.name, " describes ", dataset.num_rows, " rows, its shards hold ", rows));
  }
  const auto outside = [&](int32_t label) { return label < 0 || label >= dataset.num_classes; };
  if (std::any_of(resident->labels_.begin(), resident->labels_.end(), outside)) {
    return absl::DataLossError(
        absl::StrCat("data set ", dataset.name, " has labels outside its ", dataset.num_classes, " classes"));
  }
  return std::shared_ptr<const ResidentDataset>(std::move(resident));
}

std::vector<float> ResidentDataset::TargetNumbers(const TargetUnits& units) const {
  if (targets_.empty()) return {labels_.begin(), labels_.end()};
  if (units == TargetUnits()) return targets_;
  std::vector<float> numbers;
  for (const float target : targets_) numbers.push_back(static_cast<float>((target - units.mean) / units.stddev));
  return numbers;
}

}  // namespace chainfleet
