// Reads arrays of Zarr version 2, wherever their keys are kept: a folder, a zip archive.
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

// The content of a key such as "x/.zarray" or "x/0.0"; NOT_FOUND if there is none. More than `max_bytes` will be
// refused: whoever unpacks need not unpack it.
using ZarrGet = std::function<absl::StatusOr<std::string>(const std::string& key, int64_t max_bytes)>;

// The array at `path`: "x", or "" for one at the root. Chunks that are not there hold the array's fill_value, or zeros
// if that is null. NOT_FOUND if no array is there; INVALID_ARGUMENT names the key, what is wrong and what to do:
// version 3, filters, types that an Array has not, unknown compressors, chunks that are damaged or of another size, an
// array over limits::kMaxBlobBytes, chunks so much larger than it that to decode them is work without use. Other errors
// of `get` end the reading. Source: Zarr storage specification, version 2.
absl::StatusOr<Array> ReadZarrArray(const std::string& path, const ZarrGet& get);

// Reads those of the group's arrays `names` that exist, together up to limits::kMaxBlobBytes. Errors of ReadZarrArray
// and of `admit`, which is asked for the arrays and for the largest chunk.
absl::StatusOr<std::map<std::string, Array>> ReadZarr(const std::vector<std::string>& names, const ZarrGet& get,
                                                      const AdmitBytes& admit = AdmitAll);

// Where among an archive's `names` the Zarr group or array begins: "", or the one top folder that holds it all
// ("mine.zarr/"). None if no name is one of Zarr's.
std::optional<std::string> ZarrRoot(const std::vector<std::string>& names);

}  // namespace chainfleet
