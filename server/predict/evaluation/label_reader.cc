#include "server/predict/evaluation/label_reader.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/predict/evaluation/dataset_shard.h"

namespace chainfleet {
namespace {

struct TargetKind {
  const char* tensor;
  TensorType type;
  const char* words;
};
constexpr TargetKind kLabels = {"labels", TensorType::kInt32, "int32 labels"};
constexpr TargetKind kNumbers = {"targets", TensorType::kFloat32, "float32 targets"};

template <typename T>
absl::StatusOr<std::vector<T>> ReadAll(const BlobStore& blobs, const TargetKind& kind, const Dataset& dataset) {
  std::vector<T> targets;
  for (const DatasetShard& shard : dataset.shards) {
    CHAINFLEET_ASSIGN_OR_RETURN(const DatasetShardFile file, DatasetShardFile::Read(blobs, dataset, shard));
    CHAINFLEET_ASSIGN_OR_RETURN(const TensorView view, file.Find(kind.tensor, kind.type, {}, kind.words));
    if (shard.first_row != static_cast<int64_t>(targets.size())) break;
    targets.resize(targets.size() + static_cast<size_t>(shard.num_rows));
    std::memcpy(targets.data() + shard.first_row, view.data, static_cast<size_t>(view.size_bytes));
  }
  if (static_cast<int64_t>(targets.size()) == dataset.num_rows) return targets;
  return absl::DataLossError(absl::StrCat("data set ", dataset.name, " has ", targets.size(), " ", kind.words, " for ",
                                          dataset.num_rows, " rows; put the data set again"));
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> ReadTargets(const BlobStore& blobs, const Dataset& dataset,
                                                 const Classes& learned) {
  if (dataset.target_type != TargetType::kLabels) {
    return absl::InvalidArgumentError(
        absl::StrCat("data set ", dataset.name, " has float32 targets, the job's scores need labels"));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<int32_t> labels, ReadAll<int32_t>(blobs, kLabels, dataset));
  const auto bad = std::ranges::find_if(labels, [&](int32_t label) { return label < 0 || label >= learned.count; });
  if (bad == labels.end()) return labels;
  return absl::InvalidArgumentError(absl::StrCat("data set ", dataset.name, " has label ", *bad, " in row ",
                                                 bad - labels.begin(), ": the job has classes 0 to ",
                                                 learned.count - 1));
}

absl::StatusOr<std::vector<float>> ReadTargets(const BlobStore& blobs, const Dataset& dataset, const Numbers&) {
  if (dataset.target_type == TargetType::kFloat32) return ReadAll<float>(blobs, kNumbers, dataset);
  return absl::InvalidArgumentError(
      absl::StrCat("data set ", dataset.name, " has labels, the job's scores need float32 targets"));
}

}  // namespace chainfleet
