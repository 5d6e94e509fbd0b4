// A stored data set: decoded once on the server into canonical shards, content-addressed, shared by workers and server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/domain/draw.h"
#include "core/domain/tenant.h"

namespace chainfleet {

// Inputs of a shard are stored as they came; uint8 counts as x / 255 wherever it is used as a number.
enum class InputType { kUint8 = 0, kFloat32 = 1 };

// The type of target that a row has: a class, or a number.
enum class TargetType { kLabels = 0, kFloat32 = 1 };

// Rows [first_row, first_row + num_rows) in one safetensors object: "inputs" [rows, input_shape...] and "labels" int32
// [rows], or "targets" float32 [rows].
struct DatasetShard {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  BlobRef object;
  static void Fields(auto& self, auto&& visit) {
    visit("first_row", self.first_row);
    visit("num_rows", self.num_rows);
    visit("object", self.object, Required());
  }
  bool operator==(const DatasetShard&) const = default;
};

// One mean and standard deviation per channel of images and per feature of float32 inputs with one axis (the first axis
// of input_shape), else one pair; on the x / 255 scale. Empty: inputs stay as they are.
struct Normalisation {
  std::vector<double> mean, stddev;
  // The same with numbers: an empty one changes nothing, as means of 0 and deviations of 1 do.
  Normalisation Spelled() const { return mean.empty() ? Normalisation{{0}, {1}} : *this; }
  static void Fields(auto& self, auto&& visit) {
    visit("mean", self.mean);
    visit("stddev", self.stddev);
  }
  bool operator==(const Normalisation&) const = default;
};

// Mean and standard deviation of float32 targets: a network learns (target - mean) / stddev, and what it predicts is
// told in the targets' own units. 0 and 1 change nothing: labels, and targets that are learned as they are.
struct TargetUnits {
  double mean = 0, stddev = 1;
  static void Fields(auto& self, auto&& visit) {
    visit("mean", self.mean);
    visit("stddev", self.stddev);
  }
  bool operator==(const TargetUnits&) const = default;
};

struct Dataset {
  std::string name;
  DigestHex digest;  // SHA-256 of its content: type, shape and shard digests
  InputType input_type = InputType::kUint8;
  std::vector<int64_t> input_shape;  // {1, 28, 28}
  int64_t num_rows = 0;
  TargetType target_type = TargetType::kLabels;
  int64_t num_classes = 0;      // 0 for float32 targets
  Normalisation normalisation;  // of this data set's rows; a job records that of its training set
  TargetUnits target_units;     // likewise
  std::vector<DatasetShard> shards;
  absl::Time created_at;
  std::string tenant = kDefaultTenant;  // whoever put it first owns it; not on the wire
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name, Required());
    visit("digest", self.digest, Required());
    visit("input_type", self.input_type);
    visit("input_shape", self.input_shape);
    visit("num_rows", self.num_rows);
    visit("target_type", self.target_type, OrDefault());
    visit("num_classes", self.num_classes);
    visit("normalisation", self.normalisation, Required());
    visit("target_units", self.target_units, OrDefault());
    visit("shards", self.shards, Required());
    visit("created_at", self.created_at);
  }
};

// The bytes of all shards of the data set.
int64_t StoredBytes(const Dataset& dataset);

}  // namespace chainfleet
