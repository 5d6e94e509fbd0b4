// The zip archive of a .pt2 file: the members of one model.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/formats/admit_bytes.h"
#include "core/formats/exported_program.h"
#include "core/formats/zip.h"

namespace chainfleet {

class ExportedArchive {
 public:
  // INVALID_ARGUMENT: this is no archive of one model in little-endian bytes, or has too many members. `admit` is asked
  // for the memory of the list of members here, and for that of JSON in ReadJson.
  static absl::StatusOr<ExportedArchive> Open(const ByteSource& source, const AdmitBytes& admit);

  // `name` is without the archive's folder: "models/model.json". Errors name the member. Errors of `admit`.
  absl::StatusOr<nlohmann::json> ReadJson(const std::string& name) const;

  // Describes `tensor`, but for its name and whether it is a parameter, by its entry in a JSON list of tensors.
  // Throws nlohmann::json::exception where the entry is damaged.
  absl::Status Describe(const nlohmann::json& entry, const std::string& folder, ExportedTensor* tensor) const;

 private:
  ExportedArchive(ZipReader zip, std::string folder, AdmitBytes admit)
      : zip_(std::move(zip)), folder_(std::move(folder)), admit_(std::move(admit)) {}
  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const;
  absl::StatusOr<std::string> ReadSmall(const std::string& name, int64_t max_bytes) const;

  ZipReader zip_;
  std::string folder_;  // "net/"
  AdmitBytes admit_;
};

inline constexpr int64_t kStridedLayout = 7;  // in the schema

// Reads {"dtype": ..., "sizes": ...}; sizes that are not fixed are -1. INVALID_ARGUMENT: the type, the number of axes
// or the product of the sizes is beyond what a network may have. Throws nlohmann::json::exception.
absl::Status ReadTensorMeta(const nlohmann::json& meta, ExportedType* type, std::vector<int64_t>* shape);

absl::StatusOr<ExportedType> ExportedTypeOf(int64_t number_in_the_schema);

}  // namespace chainfleet
