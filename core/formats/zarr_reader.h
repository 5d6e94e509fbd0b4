// Reads arrays of Zarr version 2 from any store of keys, such as a folder or a zip archive.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/formats/admit_bytes.h"
#include "core/formats/array.h"

namespace chainfleet {

// Returns the content of a key such as "x/.zarray" or "x/0.0"; NOT_FOUND if the key does not exist. The reader rejects
// content above `max_bytes`, so the function need not unpack more.
using ZarrGet = std::function<absl::StatusOr<std::string>(const std::string& key, int64_t max_bytes)>;

// Reads the array at `path`: "x", or "" for an array at the root. Missing chunks hold the array's fill_value, or zeros
// if the fill_value is null. NOT_FOUND if there is no array; INVALID_ARGUMENT names the key, the problem and the
// remedy: version 3, filters, types that an Array cannot hold, unknown compressors, chunks that are damaged or of
// another size, an array over limits::kMaxBlobBytes, chunks so much larger than the array that decoding wastes work.
// Other errors of `get` end the reading. Source: Zarr storage specification, version 2.
absl::StatusOr<Array> ReadZarrArray(const std::string& path, const ZarrGet& get);

// Reads the existing arrays of the group among `names`, together up to limits::kMaxBlobBytes. Errors of ReadZarrArray
// and of `admit`, which must admit the arrays and the largest chunk.
absl::StatusOr<std::map<std::string, Array>> ReadZarr(const std::vector<std::string>& names, const ZarrGet& get,
                                                      const AdmitBytes& admit = AdmitAll);

// Returns the prefix at which the Zarr group or array starts among an archive's `names`: "", or the top folder that
// holds all names ("mine.zarr/"). nullopt if no name belongs to Zarr.
std::optional<std::string> ZarrRoot(const std::vector<std::string>& names);

}  // namespace chainfleet
