// Parses a .zarray file, the description of an array of Zarr version 2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/formats/array.h"
#include "core/formats/zarr_codec.h"

namespace chainfleet {

inline constexpr int64_t kMaxZarrMetadataBytes = 64 * 1024;  // plain arrays need about 400

struct ZarrMetadata {
  ArrayType type = ArrayType::kFloat32;
  std::vector<int64_t> shape, chunks;  // both have the same number of axes; all chunks >= 1
  ZarrCompressor compressor = ZarrCompressor::kNone;
  std::string fill;            // one item, little-endian; zero if the file has none
  bool fortran_order = false;  // order of the items in each chunk
  std::string separator = ".";
};

// INVALID_ARGUMENT names the wrong or unsupported field and the supported values. Each size may be up to 2^63 - 1; the
// product is not checked. Source: Zarr storage specification, version 2.
absl::StatusOr<ZarrMetadata> ParseZarrMetadata(const std::string& json);

}  // namespace chainfleet
