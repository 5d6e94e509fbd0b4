// The bytes of all tensors of a .pt2 file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/formats/exported_program.h"

namespace chainfleet {

inline absl::StatusOr<std::vector<std::string>> ReadExportedTensors(const std::string& bytes,
                                                                    const ExportedProgram& program) {
  std::vector<std::string> contents;
  const absl::Status read = ReadExportedTensors(bytes, program, [&](const ExportedTensor& tensor) {
    int64_t size = SizeOf(tensor.type);
    for (const int64_t extent : tensor.shape) size *= extent;
    return std::span<char>(contents.emplace_back(static_cast<size_t>(size), '\0'));
  });
  if (!read.ok()) return read;
  return contents;
}

}  // namespace chainfleet
