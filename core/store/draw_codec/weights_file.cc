#include "core/store/draw_codec/weights_file.h"

#include <algorithm>

#include "core/base/limits.h"

namespace chainfleet {
namespace {

constexpr uint64_t kMaxHeaderBytes = limits::kMiB;
constexpr size_t kLengthBytes = 8;  // the header's length comes first

const char* NameOf(TensorType type) {
  static constexpr const char* kNames[] = {"bool",    "uint8",    "int32",   "int64",
                                           "float16", "bfloat16", "float32", "float64"};
  return kNames[static_cast<int>(type)];
}

}  // namespace

bool IsSafetensors(const std::string& bytes) { return bytes.size() > kLengthBytes && bytes[kLengthBytes] == '{'; }

absl::StatusOr<Safetensors> ReadWeights(const std::string& bytes) {
  CHAINFLEET_ASSIGN_OR_RETURN(Safetensors file, ParseSafetensors(bytes, kMaxHeaderBytes));
  const auto has_numbers = [](const TensorView& tensor) { return tensor.type >= TensorType::kFloat16; };
  if (!std::ranges::any_of(file.tensors, has_numbers))
    return absl::InvalidArgumentError("the safetensors file has no tensor of floating-point numbers");
  return file;
}

std::vector<TensorSignature> SignaturesOf(const Safetensors& file) {
  std::vector<TensorSignature> signatures;
  for (const TensorView& tensor : file.tensors) signatures.push_back({tensor.name, NameOf(tensor.type), tensor.shape});
  return signatures;
}

}  // namespace chainfleet
