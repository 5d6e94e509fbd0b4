// A TorchScript file that the server takes, without TorchScript.
#pragma once

#include <cstdint>
#include <string>

#include "core/formats/npz.h"

namespace chainfleet {

// Returns an archive with the members of a TorchScript file; `salt` tells two apart.
inline std::string TorchScriptArchive(int64_t salt) {
  const Array none{ArrayType::kInt64, {1}, std::string(reinterpret_cast<const char*>(&salt), 8)};
  std::string bytes = *WriteNpz({{"m/data", none}, {"m/code/m", none}});
  // Member names of the same length: WriteNpz ends them with ".npy".
  for (size_t at = 0; (at = bytes.find("m/data.npy", at)) != std::string::npos;) bytes.replace(at, 10, "m/data.pkl");
  return bytes;
}

}  // namespace chainfleet
