// NumPy's .npy format, versions 1.0 to 3.0: C order, little-endian, uint8, int32, int64, float32, float64.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/formats/array.h"

namespace chainfleet {

// INVALID_ARGUMENT names the wrong or unsupported part, with the dtype found. The array takes over the memory of
// `bytes`.
absl::StatusOr<Array> ReadNpy(std::string bytes);

// Returns a type in NumPy's notation, such as "<f4".
const char* DescrOf(ArrayType type);
// Returns nullopt for types that an Array cannot hold.
std::optional<ArrayType> TypeOf(const std::string& descr);

// Returns the header of a file: version 1.0, padded to 64 bytes.
std::string NpyHeader(ArrayType type, const std::vector<int64_t>& shape);

std::string WriteNpy(const Array& array);
// Returns an array of strings [n], of NumPy's type <U. Bytes that are not UTF-8 become U+FFFD.
std::string WriteNpyOfTexts(const std::vector<std::string>& texts);

}  // namespace chainfleet
