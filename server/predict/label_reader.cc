#include "server/predict/label_reader.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {
namespace {

absl::Status AppendLabels(const BlobStore& blobs, const DatasetShard& shard, std::vector<int32_t>* labels) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, blobs.Get(shard.object.name));
  CHAINFLEET_ASSIGN_OR_RETURN(const Safetensors file, ParseSafetensors(bytes));
  const TensorView* view = file.Find("labels");
  if (view == nullptr || view->type != TensorType::kInt32 || view->shape != std::vector<int64_t>{shard.num_rows} ||
      shard.first_row != static_cast<int64_t>(labels->size())) {
    return absl::DataLossError(
        absl::StrCat("no int32 labels for rows ", shard.first_row, " to ", shard.first_row + shard.num_rows - 1));
  }
  labels->resize(labels->size() + static_cast<size_t>(shard.num_rows));
  std::memcpy(labels->data() + shard.first_row, view->data, static_cast<size_t>(view->size_bytes));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> ReadLabels(const BlobStore& blobs, const Dataset& dataset, int64_t num_classes) {
  if (dataset.target_type != TargetType::kLabels) {
    return absl::InvalidArgumentError(
        absl::StrCat("data set ", dataset.name, " has float32 targets, scores need labels"));
  }
  std::vector<int32_t> labels;
  for (const DatasetShard& shard : dataset.shards) {
    if (const absl::Status status = AppendLabels(blobs, shard, &labels); !status.ok()) {
      return absl::DataLossError(absl::StrCat("data set ", dataset.name, ", object ", shard.object.name, ": ",
                                              std::string(status.message()), "; put the data set again"));
    }
  }
  if (static_cast<int64_t>(labels.size()) != dataset.num_rows) {
    return absl::DataLossError(
        absl::StrCat("data set ", dataset.name, " has ", labels.size(), " labels for ", dataset.num_rows, " rows"));
  }
  const auto bad = std::ranges::find_if(labels, [&](int32_t label) { return label < 0 || label >= num_classes; });
  if (bad == labels.end()) return labels;
  return absl::InvalidArgumentError(absl::StrCat("data set ", dataset.name, " has label ", *bad, " in row ",
                                                 bad - labels.begin(), ": the job has classes 0 to ", num_classes - 1));
}

}  // namespace chainfleet
