// A stored data set: the server decodes it once into canonical, content-addressed shards that workers and server share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/domain/draw.h"
#include "core/domain/targets.h"
#include "core/domain/tenant.h"

namespace chainfleet {

// Inputs of a shard are stored as they came; uint8 counts as x / 255 wherever it is used as a number.
enum class InputType { kUint8 = 0, kFloat32 = 1 };
inline int64_t ItemBytes(InputType type) { return type == InputType::kUint8 ? 1 : 4; }

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

// One mean and standard deviation for each channel of images or each feature of float32 inputs with one axis (the first
// axis of input_shape), else one pair. The scale is x / 255. Empty vectors leave inputs unchanged.
struct Normalisation {
  std::vector<double> mean, stddev;
  // Returns numbers in place of empty vectors: a mean of 0 and a deviation of 1 change nothing.
  Normalisation Spelled() const { return mean.empty() ? Normalisation{{0}, {1}} : *this; }
  static void Fields(auto& self, auto&& visit) {
    visit("mean", self.mean);
    visit("stddev", self.stddev);
  }
  bool operator==(const Normalisation&) const = default;
};

// Mean and standard deviation of float32 targets. A network learns (target - mean) / stddev; predictions are reported
// in the units of the targets. 0 and 1 change nothing: for labels, and for targets that are not standardised.
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
  Targets targets = Classes();
  Normalisation normalisation;           // for this data set's rows; a job records that of its training set
  TargetUnits target_units;              // likewise
  std::vector<std::string> class_names;  // names of classes 0, 1, ...; empty: unnamed
  std::vector<std::string> warnings;     // likely mistakes in the content, for people
  std::vector<DatasetShard> shards;
  absl::Time created_at;
  std::vector<std::string> shared_with;  // tenants that may use it too, sorted; kEveryTenant: all
  std::string tenant = kDefaultTenant;   // the owner; not on the wire
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name, Required());
    visit("digest", self.digest, Required());
    visit("input_type", self.input_type);
    visit("input_shape", self.input_shape);
    visit("num_rows", self.num_rows);
    VisitTypedTargets(self.targets, visit);
    visit("normalisation", self.normalisation, Required());
    visit("target_units", self.target_units, OrDefault());
    visit("class_names", self.class_names, IfAny());
    visit("warnings", self.warnings, IfAny());
    visit("shards", self.shards, Required());
    visit("created_at", self.created_at);
    visit("shared_with", self.shared_with, IfAny());
  }
};

// INVALID_ARGUMENT / INVALID_FIELD unless there are no names or one for each class: text without control characters,
// all different, at most limits::kMaxClassNamesBytes together.
absl::Status CheckClassNames(const std::vector<std::string>& names, const Targets& targets);

// Returns the bytes of the inputs of one row.
int64_t InputBytes(const Dataset& dataset);

// Returns the bytes of all shards of the data set.
int64_t StoredBytes(const Dataset& dataset);

}  // namespace chainfleet
