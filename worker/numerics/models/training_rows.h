// The rows of a data set on a device, as the inputs of a network.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/limits.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/models/network_settings.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

class StoredNetwork;
struct DeviceInputs;

class TrainingRows {
 public:
  static constexpr int64_t kMostFeatureBytes = 1024 * limits::kMiB;

  TrainingRows(const std::shared_ptr<const ResidentDataset>& dataset, std::vector<int64_t> input_shape,
               const NetworkSettings& settings, at::Device device);
  ~TrainingRows();

  // Rows [first, first + count), standardised: [1, count, input_shape...].
  at::Tensor Range(int64_t first, int64_t count) const;

  // The mini-batches of chains [first, first + count), whose rows `ids` [count * n] names: [count, n, input_shape...],
  // standardised, and augmented by the chains' keys if the job asks for it.
  at::Tensor Batch(const at::Tensor& ids, const BatchRows& batch, int64_t first, int64_t count) const;

  // StoredNetwork::Features of all stored rows, [rows, ...] each. Empty: the network has none, they take more than
  // `most_bytes`, or images change in each step.
  std::vector<at::Tensor> Features(const StoredNetwork& network, int64_t most_bytes = kMostFeatureBytes) const;

 private:
  at::Tensor Standardised(const at::Tensor& stored, int64_t chains) const;

  const std::vector<int64_t> input_shape_;
  const AugmentationSpec augmentation_;
  const std::shared_ptr<const DeviceInputs> shared_;
  const at::Tensor inputs_;   // [N, row_size] as stored
  at::Tensor scale_, shift_;  // [channels, 1]
};

}  // namespace chainfleet
