// Dropout and batch norm of a .pt2 file that was exported in training mode.
#pragma once

#include "core/base/status.h"
#include "core/formats/exported_program.h"

namespace chainfleet {

// Notes in the nodes which of them train, and writes their arguments as for evaluation. Drops the nodes that count
// batches. INVALID_ARGUMENT names a batch norm without running statistics of its own, another operator that trains, and
// one that may end the process.
absl::Status FindTraining(ExportedProgram* program);

}  // namespace chainfleet
