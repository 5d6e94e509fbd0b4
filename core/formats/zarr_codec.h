// Compression of the chunks of a Zarr array: the compressors of numcodecs that we read, by zlib, libblosc and
// libzstd.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

enum class ZarrCompressor { kNone, kZlib, kGzip, kBlosc, kZstd };

// The codec with this "id" of a .zarray file, for example "blosc". None if this reader does not support it.
std::optional<ZarrCompressor> ZarrCompressorOf(const std::string& id);

// The content of a chunk, whose stored bytes decode to `size_bytes`, 0 to 2^31 - 17. INVALID_ARGUMENT if they are
// damaged or decode to another size; nothing above `size_bytes` is allocated.
absl::StatusOr<std::string> DecodeZarrChunk(ZarrCompressor compressor, std::string stored, int64_t size_bytes);

}  // namespace chainfleet
