#include "core/formats/cifar.h"

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

constexpr int64_t kPixels = 3 * 32 * 32;

}  // namespace

absl::Status ReadCifar(const std::string& bytes, int64_t record_bytes, CifarImages* images) {
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

absl::StatusOr<std::string> WriteCifar(const CifarImages& images) {
  if (images.num_classes != 10) {
    return absl::InvalidArgumentError(absl::StrCat("only CIFAR-10 records can be written, with 10 classes, not ",
                                                   images.num_classes, ": those of CIFAR-100 need coarse labels"));
  }
  const int64_t count = static_cast<int64_t>(images.labels.size());
  if (count == 0 || static_cast<int64_t>(images.pixels.size()) != count * kPixels) {
    return absl::InvalidArgumentError(absl::StrCat("CIFAR files have one label or more and ", kPixels,
                                                   " bytes of pixels for each: there are ", count, " labels and ",
                                                   images.pixels.size(), " bytes"));
  }
  std::string bytes;
  bytes.reserve(static_cast<size_t>(count * kCifar10RecordBytes));
  for (int64_t i = 0; i < count; ++i) {
    const int32_t label = images.labels[static_cast<size_t>(i)];
    if (label < 0 || label >= images.num_classes) {
      return absl::InvalidArgumentError(absl::StrCat("label ", label, " of record ", i, " is not 0 to 9"));
    }
    bytes += static_cast<char>(label);
    bytes.append(images.pixels, static_cast<size_t>(i * kPixels), kPixels);
  }
  return bytes;
}

}  // namespace chainfleet
