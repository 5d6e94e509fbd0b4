// A stored network's file in the memory of a worker. Chains and predictions share it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/formats/exported_program.h"
#include "core/formats/zip.h"

namespace chainfleet {

class ModuleProcesses;

// The parts of a .pt2 file that a worker needs.
struct ExportedModel {
  ExportedProgram program;
  std::vector<at::Tensor> tensors;  // the program's tensors, on the CPU; never written
};

// A TorchScript file.
struct ScriptFile {
  std::shared_ptr<const std::string> bytes;
  std::shared_ptr<ModuleProcesses> processes;  // which run it; null: this process does, as in tests
};

struct ModelFile {
  std::variant<ScriptFile, ExportedModel> content;

  int64_t size_bytes() const;
};

// Reads the tensors of a .pt2 file. INVALID_ARGUMENT with a violation at model.exported: errors of ReadExportedProgram
// and ReadExportedTensors. Throws LibTorch's exceptions if memory is short.
absl::StatusOr<std::shared_ptr<const ModelFile>> ReadExportedModel(const ByteSource& source);

// The same for a file in memory, which may be TorchScript that this process runs.
absl::StatusOr<std::shared_ptr<const ModelFile>> ReadModelFile(std::shared_ptr<const std::string> bytes);

}  // namespace chainfleet
