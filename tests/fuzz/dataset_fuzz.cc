// libFuzzer target: arbitrary data sets.
//
// The first byte selects the names and the purpose of the files, the next two the length of the first of two
// files; the rest is their content. For accepted files, checks the promises of DecodedDataset, so that later code
// neither divides by a size of zero nor reads beyond an array. Refused files must be INVALID_ARGUMENT, or too
// large.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/formats/decoded_dataset.h"

namespace {

using chainfleet::DecodedDataset;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

bool AllFinite(const char* bytes, size_t size) {
  for (size_t offset = 0; offset < size; offset += sizeof(float)) {
    float value;
    std::memcpy(&value, bytes + offset, sizeof value);
    if (!std::isfinite(value)) return false;
  }
  return true;
}

void CheckAccepted(const DecodedDataset& data, bool float32_targets) {
  Require(data.num_rows >= 1, "there is a row");
  Require(!data.input_shape.empty(), "a row has a shape");
  __int128 row = data.is_uint8 ? 1 : sizeof(float);
  for (const int64_t size : data.input_shape) {
    Require(size >= 1, "no size is zero");
    row *= size;
  }
  Require(row * data.num_rows == static_cast<__int128>(data.inputs.size()), "the inputs are those of the shape");
  Require(data.is_uint8 || AllFinite(data.inputs.data(), data.inputs.size()), "inputs are finite");
  Require(data.channels >= 1 && data.input_shape.front() % data.channels == 0, "channels are parts of an input");
  const auto rows = static_cast<size_t>(data.num_rows);
  if (float32_targets) {
    const auto& numbers = std::get<std::vector<float>>(data.targets);
    Require(numbers.size() == rows, "a target for each row");
    for (const float target : numbers) Require(std::isfinite(target), "targets are finite");
  } else {
    const auto& labels = std::get<std::vector<int32_t>>(data.targets);
    Require(labels.size() == rows, "a label for each row");
    for (const int32_t label : labels) Require(label >= 0 && label < data.num_classes, "a label is a class");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  constexpr const char* kNames[] = {"file", "file.csv", "file.bin", "file.zip"};
  const char* const name = kNames[data[0] & 3];
  const bool two = (data[0] & 4) != 0;
  const chainfleet::DecodeOptions options{.target = (data[0] & 8) != 0 ? "1" : "",
                                          .float32_targets = (data[0] & 16) != 0};
  const std::string content(reinterpret_cast<const char*>(data) + 3, size - 3);
  const size_t first = two ? std::min<size_t>(content.size(), data[1] * 256u + data[2]) : content.size();
  std::vector<chainfleet::UploadedFile> files = {{name, content.substr(0, first)}};
  if (two) files.push_back({name, content.substr(first)});
  const auto decoded = chainfleet::DecodeDataset(files, options);
  if (decoded.ok()) {
    CheckAccepted(*decoded, options.float32_targets);
    return 0;
  }
  Require(absl::IsInvalidArgument(decoded.status()) || absl::IsResourceExhausted(decoded.status()),
          "a refusal is INVALID_ARGUMENT or RESOURCE_EXHAUSTED");
  Require(!decoded.status().message().empty(), "a refusal says why");
  return 0;
}
