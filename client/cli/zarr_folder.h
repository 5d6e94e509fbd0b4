// Zarr groups in folders.
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

// Packs the arrays x and y of a Zarr group as a zip archive without compression. INVALID_ARGUMENT: `folder` holds no
// group of version 2. RESOURCE_EXHAUSTED: over limits::kMaxDatasetUploadBytes. Errors of FileSystem.
absl::StatusOr<std::string> PackZarr(const std::string& folder);

// Writes each entry to a file below `folder`, and creates the folders in its key. Errors of MakeOutputFolder and
// WriteOutputFile.
ZarrPut PutInFolder(const std::string& folder);

// Writes a group of these arrays to `folder`, which is created. Existing files of these names are replaced, others
// stay. Errors of MakeOutputFolder and WriteOutputFile, after which some of the files may exist.
absl::Status WriteZarrFolder(const std::string& folder, const std::map<std::string, Array>& arrays);

}  // namespace chainfleet
