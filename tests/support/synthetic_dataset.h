// A small labelled image data set made from a counter, through the same shards as a real one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/rng_key.h"
#include "core/store/draw_codec/safetensors.h"
#include "worker/numerics/dataset/resident_dataset.h"

namespace chainfleet {

inline std::shared_ptr<const ResidentDataset> SyntheticImages(int64_t num_rows,
                                                              std::vector<int64_t> input_shape = {1, 28, 28},
                                                              int64_t num_classes = 10) {
  int64_t row_size = 1;
  for (const int64_t size : input_shape) row_size *= size;
  std::string pixels(num_rows * row_size, '\0');
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<char>(RandomBlock(RngKey{1}, RngStream::kProbe, 0, static_cast<uint32_t>(i)).word[0]);
  }
  std::vector<int32_t> labels(num_rows);
  for (int64_t i = 0; i < num_rows; ++i) labels[i] = static_cast<int32_t>(i * 7 % num_classes);
  std::vector<int64_t> shape = {num_rows};
  shape.insert(shape.end(), input_shape.begin(), input_shape.end());
  const std::string shard = WriteSafetensors(
      {{"inputs", TensorType::kUint8, shape, pixels.data(), static_cast<int64_t>(pixels.size())},
       {"labels", TensorType::kInt32, {num_rows}, reinterpret_cast<const char*>(labels.data()), num_rows * 4}},
      {});
  Dataset dataset;
  dataset.name = "synthetic";
  dataset.input_shape = input_shape;
  dataset.num_rows = num_rows;
  dataset.targets = Classes{num_classes};
  dataset.normalisation = {{0.5}, {0.29}};
  dataset.shards = {{0, num_rows, {}}};
  auto resident = ResidentDataset::Create(dataset, {shard});
  CHAINFLEET_CHECK(resident.ok()) << resident.status().ToString();
  return *resident;
}

// Returns standardised images, one label each, in place of the images of `like`.
inline std::shared_ptr<const ResidentDataset> ImagesLike(const Dataset& like, const std::vector<float>& inputs,
                                                         const std::vector<int32_t>& labels) {
  Dataset dataset = like;
  dataset.num_rows = static_cast<int64_t>(labels.size());
  dataset.shards = {{0, dataset.num_rows, {}}};
  dataset.input_type = InputType::kFloat32;
  dataset.normalisation = {};
  std::vector<int64_t> shape = {dataset.num_rows};
  shape.insert(shape.end(), like.input_shape.begin(), like.input_shape.end());
  const std::string shard =
      WriteSafetensors({{"inputs", TensorType::kFloat32, shape, reinterpret_cast<const char*>(inputs.data()),
                         static_cast<int64_t>(inputs.size() * sizeof(float))},
                        {"labels",
                         TensorType::kInt32,
                         {dataset.num_rows},
                         reinterpret_cast<const char*>(labels.data()),
                         dataset.num_rows * 4}},
                       {});
  auto resident = ResidentDataset::Create(dataset, {shard});
  CHAINFLEET_CHECK(resident.ok()) << resident.status().ToString();
  return *resident;
}

}  // namespace chainfleet
