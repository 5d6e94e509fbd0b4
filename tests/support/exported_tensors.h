// The bytes of all tensors of a .pt2 file.
#pragma once

#include <string>
#include <vector>

#include "core/formats/exported_program.h"

namespace chainfleet {

inline absl::StatusOr<std::vector<std::string>> ReadExportedTensors(const std::string& bytes,
                                                                    const ExportedProgram& program) {
  std::vector<std::string> contents;
  const absl::Status read = ForEachExportedTensor(
      bytes, program, [&](const ExportedTensor&, const std::string& content) { contents.push_back(content); });
  if (!read.ok()) return read;
  return contents;
}

}  // namespace chainfleet
