#include "server/predict/evaluation/dataset_shard.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace chainfleet {

absl::Status DatasetShardFile::Damaged(const std::string& what) const {
  return absl::DataLossError(
      absl::StrCat("data set ", dataset_, ", object ", shard_.object.name, ": ", what, "; put the data set again"));
}

absl::StatusOr<DatasetShardFile> DatasetShardFile::Read(const BlobStore& blobs, const Dataset& dataset,
                                                        const DatasetShard& shard) {
  DatasetShardFile read;
  read.dataset_ = dataset.name;
  read.shard_ = shard;
  absl::StatusOr<std::string> bytes = blobs.Get(shard.object.name);
  if (!bytes.ok()) return read.Damaged(std::string(bytes.status().message()));
  read.bytes_ = std::make_unique<const std::string>(*std::move(bytes));
  absl::StatusOr<Safetensors> file = ParseSafetensors(*read.bytes_);
  if (!file.ok()) return read.Damaged(std::string(file.status().message()));
  read.file_ = *std::move(file);
  return read;
}

absl::StatusOr<TensorView> DatasetShardFile::Find(const std::string& tensor, TensorType type,
                                                  const std::vector<int64_t>& row_shape,
                                                  const std::string& words) const {
  std::vector<int64_t> shape = {shard_.num_rows};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  const TensorView* view = file_.Find(tensor);
  if (view != nullptr && view->type == type && view->shape == shape) return *view;
  return Damaged(
      absl::StrCat("no ", words, " for rows ", shard_.first_row, " to ", shard_.first_row + shard_.num_rows - 1));
}

absl::StatusOr<TensorView> DatasetShardFile::FindTargets(const Targets& sort) const {
  const bool numbers = std::holds_alternative<Numbers>(sort);
  return Find(numbers ? "targets" : "labels", numbers ? TensorType::kFloat32 : TensorType::kInt32, {},
              numbers ? "float32 targets" : "int32 labels");
}

}  // namespace chainfleet
