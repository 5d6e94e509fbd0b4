// libFuzzer target: arbitrary data sets.
//
// The first byte selects the names and the purpose of the files, the next two the length of the first of two
// files; the rest is their content. With another bit of the first byte, the two are the description and each chunk of a
// Zarr array, which the checksums of a zip archive otherwise hide from mutations. For accepted files, checks the
// promises of DecodedDataset, so that later code neither divides by a size of zero nor reads beyond an array. Refused
// files must be INVALID_ARGUMENT, or too large.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/formats/decoded_dataset.h"
#include "core/formats/zarr_reader.h"

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

void CheckZarr(const std::string& description, const std::string& chunk) {
  constexpr int64_t kRoom = 64 << 20;
  const auto get = [&](const std::string& key, int64_t) -> absl::StatusOr<std::string> {
    if (key == "x/.zarray") return description;
    return key.front() == 'x' ? absl::StatusOr<std::string>(chunk) : absl::NotFoundError(key);
  };
  const auto admit = [](int64_t bytes) {
    return bytes <= kRoom ? absl::OkStatus() : absl::ResourceExhaustedError("too large");
  };
  const auto arrays = chainfleet::ReadZarr({"x"}, get, admit);
  if (!arrays.ok()) {
    Require(absl::IsInvalidArgument(arrays.status()) || absl::IsResourceExhausted(arrays.status()),
            "a refusal is INVALID_ARGUMENT or RESOURCE_EXHAUSTED");
    return;
  }
  __int128 bytes = ItemBytes(arrays->at("x").type);
  for (const int64_t size : arrays->at("x").shape) bytes *= size;
  Require(bytes == static_cast<__int128>(arrays->at("x").bytes.size()), "the bytes are those of the shape");
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
  if ((data[0] & 32) != 0) {
    const size_t description = std::min<size_t>(content.size(), data[1] * 256u + data[2]);
    CheckZarr(content.substr(0, description), content.substr(description));
    return 0;
  }
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
