// A data set in memory, built from the canonical shards (core/domain/dataset.h). This header includes no torch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/dataset.h"

namespace chainfleet {

// Immutable, shared by the batches and predictors of a process. Thread-safe.
class ResidentDataset {
 public:
  // `shard_bytes[i]` are the safetensors bytes of `dataset.shards[i]`. DATA_LOSS: they do not match the description.
  static absl::StatusOr<std::shared_ptr<const ResidentDataset>> Create(const Dataset& dataset,
                                                                       const std::vector<std::string>& shard_bytes);
  // The inputs of `data` once for each N of `targets`, [blocks * N] as stored and of the same kind. The description
  // remains that of one block.
  static std::shared_ptr<const ResidentDataset> WithTargets(const ResidentDataset& data, TargetValues targets);

  const Dataset& description() const { return description_; }
  int64_t num_classes() const { return NumClasses(description_.targets); }  // 0 for numbers
  int64_t row_size() const { return row_size_; }                            // values per input
  int64_t stored_rows() const;                                              // num_rows, or that of all blocks
  // Raw values as stored: uint8 or float32 by description().input_type, [stored_rows, row_size].
  const std::string& input_bytes() const { return input_bytes_; }
  const TargetValues& targets() const { return targets_; }
  // Targets as float32 [stored_rows]: labels as numbers; float32 targets standardised, (target - mean) / stddev.
  std::vector<float> TargetNumbers(const TargetUnits& units = {}) const;

 private:
  Dataset description_;
  int64_t row_size_ = 0;
  std::string input_bytes_;
  TargetValues targets_;
};

}  // namespace chainfleet
