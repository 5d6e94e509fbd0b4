// Decompresses chunks of a Zarr array with the supported compressors of numcodecs, by zlib, libblosc and
// libzstd.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

enum class ZarrCompressor { kNone, kZlib, kGzip, kBlosc, kZstd };

// Returns the codec with this "id" of a .zarray file, for example "blosc"; nullopt if the reader does not support it.
std::optional<ZarrCompressor> ZarrCompressorOf(const std::string& id);

// Returns the content of a chunk, whose stored bytes decode to `size_bytes`, 0 to 2^31 - 17. INVALID_ARGUMENT if the
// bytes are damaged or decode to another size. Never allocates more than `size_bytes`.
absl::StatusOr<std::string> DecodeZarrChunk(ZarrCompressor compressor, std::string stored, int64_t size_bytes);

}  // namespace chainfleet
