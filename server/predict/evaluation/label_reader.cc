#include "server/predict/evaluation/label_reader.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/predict/evaluation/dataset_shard.h"

namespace chainfleet {
namespace {

absl::StatusOr<TargetValues> ReadAll(const BlobStore& blobs, const Dataset& dataset) {
  TargetValues targets = EmptyOf<TargetValues>(dataset.targets);
  int64_t rows = 0;
  for (const DatasetShard& shard : dataset.shards) {
    CHAINFLEET_ASSIGN_OR_RETURN(const DatasetShardFile file, DatasetShardFile::Read(blobs, dataset, shard));
    CHAINFLEET_ASSIGN_OR_RETURN(const TensorView view, file.FindTargets(dataset.targets));
    if (shard.first_row != rows) break;
    rows += shard.num_rows;
    const auto append = [&](auto& values) {
      values.resize(static_cast<size_t>(rows));
      std::memcpy(values.data() + shard.first_row, view.data, static_cast<size_t>(view.size_bytes));
    };
    std::visit(append, targets);
  }
  if (rows == dataset.num_rows) return targets;
  const bool numbers = std::holds_alternative<Numbers>(dataset.targets);
  return absl::DataLossError(absl::StrCat("data set ", dataset.name, " has ", rows,
                                          numbers ? " float32 targets" : " int32 labels", " for ", dataset.num_rows,
                                          " rows; put the data set again"));
}

absl::Status CheckLabels(const std::string& dataset, const std::vector<int32_t>& labels, int64_t classes) {
  const auto bad = std::ranges::find_if(labels, [&](int32_t label) { return label < 0 || label >= classes; });
  if (bad == labels.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("data set ", dataset, " has label ", *bad, " in row ",
                                                 bad - labels.begin(), ": the job has classes 0 to ", classes - 1));
}

}  // namespace

absl::StatusOr<TargetValues> ReadTargets(const BlobStore& blobs, const Dataset& dataset, const Targets& learned) {
  if (dataset.targets.index() != learned.index()) {
    return absl::InvalidArgumentError(absl::StrCat("data set ", dataset.name, " has ", WordsOf(dataset.targets),
                                                   ", the job's scores need ", WordsOf(learned)));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(TargetValues targets, ReadAll(blobs, dataset));
  if (const auto* const labels = std::get_if<std::vector<int32_t>>(&targets)) {
    CHAINFLEET_RETURN_IF_ERROR(CheckLabels(dataset.name, *labels, NumClasses(learned)));
  }
  return targets;
}

}  // namespace chainfleet
