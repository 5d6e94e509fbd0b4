#include "core/store/draw_codec/weights_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/limits.h"

namespace chainfleet {
namespace {

constexpr int64_t kMaxHeaderBytes = limits::kMiB;
constexpr int64_t kLengthBytes = 8;  // the header's length comes first

const char* NameOf(TensorType type) {
  static constexpr const char* kNames[] = {"bool",    "uint8",    "int32",   "int64",
                                           "float16", "bfloat16", "float32", "float64"};
  return kNames[static_cast<int>(type)];
}

std::string PrefixOf(DrawKind kind) { return ToString(kind) + "/"; }

absl::StatusOr<Safetensors> WithNumbers(absl::StatusOr<Safetensors> file) {
  const auto has_numbers = [](const TensorView& tensor) { return tensor.type >= TensorType::kFloat16; };
  if (!file.ok() || std::ranges::any_of(file->tensors, has_numbers)) return file;
  return absl::InvalidArgumentError("the safetensors file has no tensor of floating-point numbers");
}

}  // namespace

bool IsSafetensors(const ByteSource& file) {
  std::string buffer;
  const absl::StatusOr<std::string_view> brace = file.Range(kLengthBytes, 1, &buffer);
  return brace.ok() && *brace == "{";
}

absl::StatusOr<Safetensors> ReadWeights(const std::string& bytes) {
  return WithNumbers(ParseSafetensors(bytes, kMaxHeaderBytes));
}

absl::StatusOr<Safetensors> ReadWeightsHeader(const ByteSource& file) {
  std::string buffer;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string_view begin, file.Range(0, kLengthBytes + kMaxHeaderBytes, &buffer));
  return WithNumbers(ParseSafetensorsHeader(begin, file.size_bytes(), kMaxHeaderBytes));
}

std::vector<TensorSignature> SignaturesOf(const Safetensors& file) {
  std::vector<TensorSignature> signatures;
  for (const TensorView& tensor : file.tensors) signatures.push_back({tensor.name, NameOf(tensor.type), tensor.shape});
  return signatures;
}

absl::StatusOr<int64_t> NumDrawsIn(const std::vector<TensorSignature>& tensors) {
  const std::string prefix = PrefixOf(DrawKind::kTheta);
  std::optional<int64_t> draws;
  for (const TensorSignature& tensor : tensors) {
    if (!tensor.name.starts_with(prefix) || tensor.shape.empty()) continue;
    const int64_t here = tensor.shape.front();
    if (here == 0) return absl::InvalidArgumentError(tensor.name + " has no draws: export a chain that has some");
    if (draws.value_or(here) != here) {
      return absl::InvalidArgumentError("its tensors have different numbers of draws: export the job again");
    }
    draws = here;
  }
  return draws.value_or(0);
}

Safetensors DrawIn(const Safetensors& file, DrawKind kind, int64_t draw) {
  const std::string prefix = PrefixOf(kind);
  Safetensors one;
  for (TensorView tensor : file.tensors) {
    if (!tensor.name.starts_with(prefix) || tensor.shape.empty() || tensor.shape.front() <= draw) continue;
    tensor.name.erase(0, prefix.size());
    tensor.size_bytes /= tensor.shape.front();
    tensor.data += draw * tensor.size_bytes;
    tensor.shape.erase(tensor.shape.begin());
    one.tensors.push_back(std::move(tensor));
  }
  return one;
}

}  // namespace chainfleet
