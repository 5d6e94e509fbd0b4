#include "core/formats/cifar.h"

#include "absl/strings/str_cat.h"

namespace chainfleet {

absl::Status ReadCifar(const std::string& bytes, int64_t record_bytes, CifarImages* images) {
  constexpr int64_t kPixels = 3 * 32 * 32;
  images->num_classes = record_bytes == kCifar10RecordBytes ? 10 : 100;
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (size == 0 || size % record_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(size, " bytes are not a whole number of CIFAR-", images->num_classes,
                                                   " records of ", record_bytes));
  }
  for (int64_t end = record_bytes; end <= size; end += record_bytes) {
    const int32_t label = static_cast<uint8_t>(bytes[static_cast<size_t>(end - kPixels - 1)]);
    if (label >= images->num_classes) {
      return absl::InvalidArgumentError(absl::StrCat("label ", label, " of record ", end / record_bytes - 1,
                                                     " is not 0 to ", images->num_classes - 1));
    }
    images->labels.push_back(label);
    images->pixels.append(bytes, static_cast<size_t>(end - kPixels), kPixels);
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
