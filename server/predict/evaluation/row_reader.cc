#include "server/predict/evaluation/row_reader.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/content_limits.h"
#include "server/predict/evaluation/dataset_shard.h"

namespace chainfleet {
namespace {

absl::Status Check(const Dataset& dataset, const std::vector<int64_t>& rows) {
  if (rows.empty()) return InvalidFields({{"rows", "missing: name the rows to read, from 0 on"}});
  const int64_t bytes = InputBytes(dataset), most = limits::kMaxReplyBytes / (bytes + limits::kCountedRowBytes);
  if (static_cast<int64_t>(rows.size()) > most) {
    return absl::ResourceExhaustedError(absl::StrCat("of data set ", dataset.name, ", whose rows have ", bytes,
                                                     " bytes, one call reads ", most, " rows, not ", rows.size()));
  }
  for (const int64_t row : rows) {
    if (row >= 0 && row < dataset.num_rows) continue;
    return absl::OutOfRangeError(
        absl::StrCat("data set ", dataset.name, " has no row ", row, ": its rows are 0 to ", dataset.num_rows - 1));
  }
  return absl::OkStatus();
}

// Reads the requested rows that are in this shard.
absl::Status TakeShard(const BlobStore& blobs, const Dataset& dataset, const DatasetShard& shard,
                       const std::vector<int64_t>& rows, RowValues* taken) {
  CHAINFLEET_ASSIGN_OR_RETURN(const DatasetShardFile file, DatasetShardFile::Read(blobs, dataset, shard));
  const bool bytes = dataset.input_type == InputType::kUint8;
  CHAINFLEET_ASSIGN_OR_RETURN(const TensorView inputs,
                              file.Find("inputs", bytes ? TensorType::kUint8 : TensorType::kFloat32,
                                        dataset.input_shape, bytes ? "uint8 inputs" : "float32 inputs"));
  CHAINFLEET_ASSIGN_OR_RETURN(const TensorView targets, file.FindTargets(dataset.targets));
  const int64_t row_bytes = InputBytes(dataset);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t row = rows[i] - shard.first_row;
    if (row < 0 || row >= shard.num_rows) continue;
    std::memcpy(taken->inputs.data() + static_cast<int64_t>(i) * row_bytes, inputs.data + row * row_bytes,
                static_cast<size_t>(row_bytes));
    const auto take = [&]<typename T>(std::vector<T>& values) {
      std::memcpy(&values[i], targets.data + row * static_cast<int64_t>(sizeof(T)), sizeof(T));
    };
    std::visit(take, taken->targets);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RowValues> ReadRows(const BlobStore& blobs, const Dataset& dataset, const std::vector<int64_t>& rows) {
  CHAINFLEET_RETURN_IF_ERROR(Check(dataset, rows));
  RowValues taken{.type = dataset.input_type, .shape = {static_cast<int64_t>(rows.size())}};
  taken.shape.insert(taken.shape.end(), dataset.input_shape.begin(), dataset.input_shape.end());
  taken.inputs.resize(rows.size() * static_cast<size_t>(InputBytes(dataset)));
  taken.targets = EmptyOf<TargetValues>(dataset.targets);
  std::visit([&](auto& values) { values.resize(rows.size()); }, taken.targets);
  for (const DatasetShard& shard : dataset.shards) {
    const auto inside = [&](int64_t row) { return row >= shard.first_row && row - shard.first_row < shard.num_rows; };
    if (std::ranges::any_of(rows, inside)) {
      CHAINFLEET_RETURN_IF_ERROR(TakeShard(blobs, dataset, shard, rows, &taken));
    }
  }
  return taken;
}

}  // namespace chainfleet
