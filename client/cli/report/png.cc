#include "client/cli/report/png.h"

#include <png.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace chainfleet {

std::string EncodePng(const std::string& samples, int64_t width, int64_t height, int channels) {
  CHAINFLEET_CHECK(channels == 1 || channels == 3);
  CHAINFLEET_CHECK(static_cast<int64_t>(samples.size()) == width * height * channels);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string png(size, '\0');
  const int written = png_image_write_to_memory(&image, png.data(), &size, 0, samples.data(), 0, nullptr);
  png.resize(written != 0 ? size : 0);
  return png;
}

std::string DataUri(const std::string& png) { return absl::StrCat("data:image/png;base64,", absl::Base64Escape(png)); }

}  // namespace chainfleet
