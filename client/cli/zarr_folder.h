// Zarr groups that users have as folders.
#pragma once

#include <map>
#include <string>

#include "core/base/status.h"
#include "core/formats/array.h"
#include "core/formats/zarr.h"
#include "core/formats/zarr_reader.h"

namespace chainfleet {

// The keys of a Zarr store in `folder`.
ZarrGet KeysOf(const std::string& folder);

// The arrays x and y of a Zarr group as a zip archive, stored without compression. INVALID_ARGUMENT if `folder` holds
// no group of version 2, RESOURCE_EXHAUSTED if it is over limits::kMaxDatasetUploadBytes; errors of FileSystem.
absl::StatusOr<std::string> PackZarr(const std::string& folder);

// Makes each entry a file of `folder` and the folders in its key, which are made. Errors of MakeOutputFolder and
// WriteOutputFile.
ZarrPut PutInFolder(const std::string& folder);

// A group of these arrays in `folder`, which is made; files of these names in it are replaced, others stay. Errors of
// MakeOutputFolder and WriteOutputFile, after which some of the files may be there.
absl::Status WriteZarrFolder(const std::string& folder, const std::map<std::string, Array>& arrays);

}  // namespace chainfleet
