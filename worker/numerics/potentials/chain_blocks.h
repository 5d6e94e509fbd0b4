// Chains that see the same inputs with targets of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// Example i of row r is example i of block (*blocks)[r] of the data set (ResidentDataset::WithTargets). `blocks` has
// one entry for each row of the arena of a call. The whole potential has no statistics.
std::unique_ptr<Potential> WithBlocks(std::unique_ptr<Potential> whole,
                                      std::shared_ptr<const std::vector<int32_t>> blocks);

}  // namespace chainfleet
