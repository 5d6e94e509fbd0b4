// libFuzzer target: safetensors files as networks of strangers, segments of workers and drawn state_dicts have them.
//
// All readers get the same bytes. What a reader accepts has tensors within the file, whose bytes match their shapes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/segment_codec.h"
#include "core/store/draw_codec/weights_file.h"

namespace {

using chainfleet::Safetensors;
using chainfleet::TensorView;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void CheckAccepted(const Safetensors& file, const std::string& bytes) {
  int64_t total = 0;
  for (const TensorView& tensor : file.tensors) {
    __int128 size = ItemBytes(tensor.type);
    for (const int64_t extent : tensor.shape) {
      Require(extent >= 0, "no extent is negative");
      if (extent == 0 || size <= static_cast<__int128>(bytes.size())) size *= extent;
    }
    Require(size == tensor.size_bytes, "the bytes are those of the shape");
    Require(tensor.data >= bytes.data() && tensor.data + tensor.size_bytes <= bytes.data() + bytes.size(),
            "a tensor is within the file");
    total += tensor.size_bytes;
  }
  Require(total <= static_cast<int64_t>(bytes.size()), "tensors do not overlap");
  const std::string written = WriteSafetensors(file.tensors, file.metadata);
  const auto again = chainfleet::ParseSafetensors(written);
  Require(again.ok() && again->tensors.size() == file.tensors.size() && again->metadata == file.metadata,
          "a file that is read can be written and read");
}

void CheckDraws(const Safetensors& file, const std::string& bytes) {
  const auto draws = chainfleet::NumDrawsIn(SignaturesOf(file));
  Require(draws.ok() || absl::IsInvalidArgument(draws.status()), "a refusal is INVALID_ARGUMENT");
  if (draws.value_or(0) == 0) return;
  for (const TensorView& tensor : DrawIn(file, chainfleet::DrawKind::kTheta, *draws - 1).tensors) {
    const char* const end = bytes.data() + bytes.size();
    Require(tensor.data >= bytes.data() && tensor.data + tensor.size_bytes <= end, "a draw is within the file");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto file = chainfleet::ParseSafetensors(bytes);
  if (file.ok()) CheckAccepted(*file, bytes);
  Require(file.ok() || absl::IsInvalidArgument(file.status()), "a refusal is INVALID_ARGUMENT");
  const auto header = chainfleet::ReadWeightsHeader(bytes);
  const auto weights = chainfleet::ReadWeights(bytes);
  Require(header.ok() == weights.ok(), "the header alone gets the same answer");
  if (weights.ok()) Require(SignaturesOf(*weights).size() == weights->tensors.size(), "each tensor has a signature");
  if (weights.ok()) CheckDraws(*weights, bytes);
  const auto segment = chainfleet::DecodeSegment(bytes);
  if (segment.ok()) {
    Require(!segment->draws.empty(), "a segment has draws");
  } else {
    Require(absl::IsDataLoss(segment.status()) || absl::IsFailedPrecondition(segment.status()),
            "a damaged segment is DATA_LOSS or FAILED_PRECONDITION");
  }
  if (const auto name = chainfleet::ParseChainObjectName(bytes)) {
    Require(chainfleet::IsObjectName(bytes), "a name that is parsed is a name of an object");
    Require(bytes.find("..") == std::string::npos && bytes.front() != '/', "a name stays within the store");
  }
  return 0;
}
