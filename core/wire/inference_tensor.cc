#include "core/wire/inference_tensor.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

using Tensor = inference::ModelInferRequest::InferInputTensor;

enum class Datatype { kUint8, kFp16, kBf16, kFp32, kFp64, kBool, kInt32, kInt64 };

struct DatatypeEntry {
  const char* name;
  Datatype type;
  int64_t bytes;
  bool only_in_columns = false;
};
constexpr DatatypeEntry kDatatypes[] = {{"UINT8", Datatype::kUint8, 1},       {"FP16", Datatype::kFp16, 2},
                                        {"BF16", Datatype::kBf16, 2},         {"FP32", Datatype::kFp32, 4},
                                        {"FP64", Datatype::kFp64, 8},         {"BOOL", Datatype::kBool, 1, true},
                                        {"INT32", Datatype::kInt32, 4, true}, {"INT64", Datatype::kInt64, 8, true}};

template <typename... Parts>
absl::Status Invalid(const Tensor& tensor, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("input '", tensor.name(), "' ", parts...));
}

absl::StatusOr<DatatypeEntry> DatatypeOf(const Tensor& tensor, bool is_column) {
  for (const DatatypeEntry& entry : kDatatypes) {
    if (tensor.datatype() == entry.name && (is_column || !entry.only_in_columns)) return entry;
  }
  return Invalid(tensor, "has datatype '", tensor.datatype(), "': ", is_column ? "INT64, INT32, BOOL, " : "",
                 "FP32, FP16, BF16, FP64 or UINT8 is expected");
}

absl::StatusOr<int64_t> NumElements(const Tensor& tensor) {
  int64_t elements = 1;
  for (const int64_t size : tensor.shape()) {
    if (size < 0) return Invalid(tensor, "has a negative size in its shape: ", size);
    if (__builtin_mul_overflow(elements, size, &elements)) return Invalid(tensor, "has a shape of too many elements");
  }
  return elements;
}

// Converts IEEE binary16. Subnormals are multiples of 2^-24.
float FromFp16(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  float magnitude = std::ldexp(static_cast<float>(fraction), -24);
  if (exponent == 0x1f) {
    magnitude = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent > 0) {
    magnitude = std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
  }
  return bits >> 15 ? -magnitude : magnitude;
}

float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Converts each `From` in `bytes` with `convert` and returns float32 bytes.
template <typename From, typename Convert>
std::string Converted(const std::string& bytes, Convert convert) {
  std::string floats(bytes.size() / sizeof(From) * sizeof(float), '\0');
  for (size_t i = 0; i * sizeof(From) < bytes.size(); ++i) {
    From from;
    std::memcpy(&from, bytes.data() + i * sizeof(From), sizeof(From));
    const float value = convert(from);
    std::memcpy(floats.data() + i * sizeof(float), &value, sizeof value);
  }
  return floats;
}

absl::StatusOr<std::string> FromFp64(const Tensor& tensor, const std::string& bytes) {
  bool fits = true;
  std::string floats = Converted<double>(bytes, [&fits](double value) {
    const auto narrowed = static_cast<float>(value);
    fits &= std::isfinite(narrowed) || !std::isfinite(value);
    return narrowed;
  });
  if (!fits) return Invalid(tensor, "has a value beyond the range of float32");
  return floats;
}

template <typename Whole>
absl::StatusOr<std::string> FromWhole(const Tensor& tensor, const std::string& bytes) {
  constexpr int64_t kExact = 1 << 24;
  bool fits = true;
  std::string floats = Converted<Whole>(bytes, [&fits](Whole value) {
    fits &= value >= -kExact && value <= kExact;
    return static_cast<float>(value);
  });
  if (!fits) return Invalid(tensor, "has a whole number beyond 2^24, which float32 cannot hold");
  return floats;
}

template <typename Values>
std::string BytesOf(const Values& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     static_cast<size_t>(values.size()) * sizeof(*values.data()));
}

int64_t NumContents(const inference::InferTensorContents& contents) {
  return contents.bool_contents_size() + contents.int_contents_size() + contents.int64_contents_size() +
         contents.uint_contents_size() + contents.uint64_contents_size() + contents.fp32_contents_size() +
         contents.fp64_contents_size() + contents.bytes_contents_size();
}

// Returns the values as the tensor's raw bytes.
absl::StatusOr<std::string> BytesOfContents(const Tensor& tensor, Datatype type) {
  const inference::InferTensorContents& contents = tensor.contents();
  std::string bytes;
  int64_t of_type = 0;
  if (type == Datatype::kFp32) {
    bytes = BytesOf(contents.fp32_contents());
    of_type = contents.fp32_contents_size();
  } else if (type == Datatype::kFp64) {
    bytes = BytesOf(contents.fp64_contents());
    of_type = contents.fp64_contents_size();
  } else if (type == Datatype::kInt64) {
    bytes = BytesOf(contents.int64_contents());
    of_type = contents.int64_contents_size();
  } else if (type == Datatype::kInt32) {
    bytes = BytesOf(contents.int_contents());
    of_type = contents.int_contents_size();
  } else if (type == Datatype::kBool) {
    bytes = BytesOf(contents.bool_contents());
    of_type = contents.bool_contents_size();
  } else if (type == Datatype::kUint8) {
    of_type = contents.uint_contents_size();
    for (const uint32_t value : contents.uint_contents()) {
      if (value > 255) return Invalid(tensor, "of UINT8 has the value ", value);
      bytes.push_back(static_cast<char>(value));
    }
  }
  if (of_type != NumContents(contents)) {
    return Invalid(tensor, "of ", tensor.datatype(), " has contents of another datatype",
                   type == Datatype::kFp16 || type == Datatype::kBf16 ? ": this one travels as raw bytes only" : "");
  }
  return bytes;
}

// Returns float32 bytes, or those of UINT8 unless it is a column.
absl::StatusOr<std::string> NumbersOf(const Tensor& tensor, Datatype type, bool is_column, std::string* raw) {
  const auto same = [](auto value) { return static_cast<float>(value); };
  switch (type) {
    case Datatype::kUint8:
      return is_column ? Converted<uint8_t>(*raw, same) : std::move(*raw);
    case Datatype::kBool:
      return Converted<uint8_t>(*raw, [](uint8_t value) { return value == 0 ? 0.0f : 1.0f; });
    case Datatype::kFp16:
      return Converted<uint16_t>(*raw, FromFp16);
    case Datatype::kBf16:
      return Converted<uint16_t>(*raw, FromBf16);
    case Datatype::kFp64:
      return FromFp64(tensor, *raw);
    case Datatype::kInt32:
      return FromWhole<int32_t>(tensor, *raw);
    case Datatype::kInt64:
      return FromWhole<int64_t>(tensor, *raw);
    case Datatype::kFp32:
      break;
  }
  return std::move(*raw);
}

absl::StatusOr<InputTensor> Read(const Tensor& tensor, std::string* raw, bool is_column) {
  CHAINFLEET_ASSIGN_OR_RETURN(const DatatypeEntry datatype, DatatypeOf(tensor, is_column));
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t elements, NumElements(tensor));
  if (raw != nullptr && NumContents(tensor.contents()) > 0) {
    return Invalid(tensor, "has contents although the request has raw bytes: give one of them");
  }
  std::string from_contents;
  if (raw == nullptr) {
    CHAINFLEET_ASSIGN_OR_RETURN(from_contents, BytesOfContents(tensor, datatype.type));
    raw = &from_contents;
  }
  const auto size = static_cast<int64_t>(raw->size());
  if (size % datatype.bytes != 0 || size / datatype.bytes != elements) {
    return Invalid(tensor, "has ", size, " bytes where ", elements, " elements of ", tensor.datatype(), " have ",
                   datatype.bytes, " each");
  }
  InputTensor input;
  input.type = datatype.type == Datatype::kUint8 && !is_column ? InputType::kUint8 : InputType::kFloat32;
  input.shape.assign(tensor.shape().begin(), tensor.shape().end());
  CHAINFLEET_ASSIGN_OR_RETURN(input.bytes, NumbersOf(tensor, datatype.type, is_column, raw));
  return input;
}

}  // namespace

absl::StatusOr<InputTensor> InputFromProto(const Tensor& tensor, std::string* raw) { return Read(tensor, raw, false); }

absl::StatusOr<InputTensor> ColumnFromProto(const Tensor& tensor, std::string* raw) { return Read(tensor, raw, true); }

}  // namespace chainfleet
