// Several chains of an exported network in each call of an operator on a CPU, with bits that depend on no other chain.
//
// LibTorch's libraries may choose a kernel by the place of a chain in a call and by the number of chains, but never by
// the numbers of other chains. So every call has kChainLanes chains, and a chain is always at the same place. Places
// without a chain compute a copy of another one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/domain/job_spec.h"
#include "worker/numerics/models/stored_network.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

inline constexpr int64_t kChainLanes = 8;

// True if the job asks for it (vmap), and a call of kChainLanes chains of the network is faster than kChainLanes calls.
// A function of the job and the shapes alone; docs/explanation/performance.md has the measurements.
bool TakesLanes(const StoredNetwork& network, const JobSpec& spec);

// Evaluates `potential`, which runs kInLanes, with each chain at its place. `chains`: the chain of each row; rows of an
// arena of another size have a call each. `potential` is on the CPU.
std::unique_ptr<Potential> WithLanes(std::unique_ptr<Potential> potential,
                                     std::shared_ptr<const std::vector<int32_t>> chains);

}  // namespace chainfleet
