#include "core/formats/streamed_array.h"

#include <cstring>
#include <memory>
#include <utility>

namespace chainfleet {

StreamedArray Streamed(std::string name, Array array, std::vector<std::string> dimensions) {
  const auto bytes = std::make_shared<const std::string>(std::move(array.bytes));
  return {std::move(name),
          array.type,
          std::move(array.shape),
          std::move(dimensions),
          [bytes](int64_t at, char* to, int64_t count) {
            std::memcpy(to, bytes->data() + at, static_cast<size_t>(count));
            return absl::OkStatus();
          },
          false};
}

}  // namespace chainfleet
