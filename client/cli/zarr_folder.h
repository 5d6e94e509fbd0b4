// Zarr groups that users have as folders.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/formats/zarr_reader.h"

namespace chainfleet {

// The keys of a Zarr store in `folder`.
ZarrGet KeysOf(const std::string& folder);

// The arrays x and y of a Zarr group as a zip archive, stored without compression. INVALID_ARGUMENT if `folder` holds
// no group of version 2, RESOURCE_EXHAUSTED if it is over limits::kMaxDatasetUploadBytes; errors of FileSystem.
absl::StatusOr<std::string> PackZarr(const std::string& folder);

}  // namespace chainfleet
