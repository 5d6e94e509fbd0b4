// One stored object of a data set, read whole into memory and checked against its record.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/dataset.h"
#include "core/store/blob_store/blob_store.h"
#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {

// Movable. The views that it returns live as long as it does.
class DatasetShardFile {
 public:
  // Blocks. DATA_LOSS, naming data set and object: the object is gone or is not a tensor file. `dataset` is used only
  // during the call.
  static absl::StatusOr<DatasetShardFile> Read(const BlobStore& blobs, const Dataset& dataset,
                                               const DatasetShard& shard);

  // Returns the tensor [rows of the shard, row_shape...]. DATA_LOSS: there is no such tensor; the error calls it
  // `words` ("int32 labels").
  absl::StatusOr<TensorView> Find(const std::string& tensor, TensorType type, const std::vector<int64_t>& row_shape,
                                  const std::string& words) const;
  // The same for the targets of its rows.
  absl::StatusOr<TensorView> FindTargets(const Targets& sort) const;

 private:
  absl::Status Damaged(const std::string& what) const;

  std::string dataset_;
  DatasetShard shard_;
  std::unique_ptr<const std::string> bytes_;
  Safetensors file_;  // into bytes_
};

}  // namespace chainfleet
