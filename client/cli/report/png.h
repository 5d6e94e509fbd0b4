// Small pictures inside the page: PNG bytes, and the address that holds them.
#pragma once

#include <cstdint>
#include <string>

namespace chainfleet {

// 8 bits a sample, row-major, samples of a pixel together: `channels` 1 (grey) or 3 (red, green, blue).
// `samples` holds width x height x channels bytes. Empty if libpng has no memory for it.
std::string EncodePng(const std::string& samples, int64_t width, int64_t height, int channels);

// "data:image/png;base64,...".
std::string DataUri(const std::string& png);

}  // namespace chainfleet
