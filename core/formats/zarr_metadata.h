// The content of a .zarray file: the description of an array of Zarr version 2.
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
  std::vector<int64_t> shape, chunks;  // as many axes; all chunks >= 1
  ZarrCompressor compressor = ZarrCompressor::kNone;
  std::string fill;            // one item, little-endian; zero if the array names none
  bool fortran_order = false;  // inside each chunk
  std::string separator = ".";
};

// INVALID_ARGUMENT says which field is wrong or not supported, and what is. Sizes may be up to 2^63 - 1, whatever their
// product. Source: Zarr storage specification, version 2.
absl::StatusOr<ZarrMetadata> ParseZarrMetadata(const std::string& json);

}  // namespace chainfleet
