// A small table of float32 inputs with targets or labels, made from a counter, through the same shards as a real one.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/rng_key.h"
#include "core/store/draw_codec/safetensors.h"
#include "worker/numerics/dataset/resident_dataset.h"

namespace chainfleet {

struct Table {
  int64_t width = 0;
  std::vector<float> inputs;    // [N, width]
  std::vector<float> targets;   // [N], or
  std::vector<int32_t> labels;  // [N] of 0 and 1
  Normalisation normalisation;
};

// Returns inputs uniform around 0.3; targets 3 - 2 x_0 + 1.5 x_1 - ... of the standardised inputs, with uniform noise;
// and labels that are 1 for positive targets.
inline Table MakeTable(int64_t num_rows, int64_t width, bool labels) {
  Table table{width, {}, {}, {}, {{0.3}, {1.7}}};
  uint32_t at = 0;
  const auto uniform = [&] { return UniformFloat(RandomBlock(RngKey{9}, RngStream::kProbe, 0, at++).word[0]); };
  for (int64_t i = 0; i < num_rows; ++i) {
    double target = 3 + 4 * (uniform() - 0.5);
    for (int64_t j = 0; j < width; ++j) {
      table.inputs.push_back(6 * (uniform() - 0.5f) + 0.3f);
      target += (j % 2 == 0 ? -2 : 1.5) * (table.inputs.back() - 0.3) / 1.7;
    }
    if (labels) {
      table.labels.push_back(target > 3);
    } else {
      table.targets.push_back(static_cast<float>(target));
    }
  }
  return table;
}

inline std::shared_ptr<const ResidentDataset> Resident(const Table& table, int64_t num_classes = 2) {
  const bool labels = !table.labels.empty();
  const int64_t rows = static_cast<int64_t>(labels ? table.labels.size() : table.targets.size());
  const char* targets =
      labels ? reinterpret_cast<const char*>(table.labels.data()) : reinterpret_cast<const char*>(table.targets.data());
  const std::string shard = WriteSafetensors(
      {{"inputs",
        TensorType::kFloat32,
        {rows, table.width},
        reinterpret_cast<const char*>(table.inputs.data()),
        rows * table.width * 4},
       {labels ? "labels" : "targets", labels ? TensorType::kInt32 : TensorType::kFloat32, {rows}, targets, rows * 4}},
      {});
  Dataset dataset{.name = "table",
                  .input_type = InputType::kFloat32,
                  .input_shape = {table.width},
                  .num_rows = rows,
                  .targets = labels ? Targets(Classes{num_classes}) : Numbers(),
                  .normalisation = table.normalisation,
                  .shards = {{0, rows, {}}}};
  auto resident = ResidentDataset::Create(dataset, {shard});
  CHAINFLEET_CHECK(resident.ok()) << resident.status().ToString();
  return *resident;
}

}  // namespace chainfleet
