// The outputs of a network for a block of examples under one draw after another, on a CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/dataset/input_rows.h"

namespace chainfleet {

class ScriptedNetwork;

// Each example's numbers are the same whatever else is in its block, and wherever in it. Not thread-safe: one per
// thread; on several threads at once only inside RunSingleThreaded.
class BlockNetwork {
 public:
  virtual ~BlockNetwork() = default;

  // Reads rows [first, first + count), count <= kMaxBlockRows.
  virtual void Read(const InputRows& rows, int64_t first, int64_t count) = 0;
  // [groups of 16][outputs][16] (kernels/lanes.h) of what was last read, valid until the next call. `draw`: parameters
  // and statistics of the network, in order, no padding.
  virtual const float* Outputs(const float* draw) = 0;
};

inline constexpr int64_t kMaxBlockRows = 64;

// The fused kernels if the network is theirs, else its layers over images in lanes. `script`: the network is a module,
// which runs a row at a time, and `network` is its shape.
std::unique_ptr<BlockNetwork> MakeBlockNetwork(const NetworkShape& network,
                                               std::shared_ptr<const ScriptedNetwork> script = nullptr);

// One output, weights . x + intercept in double: of the analytic regressions. `parameters` are theirs.
std::unique_ptr<BlockNetwork> MakeLinearBlock(const std::vector<ParameterShape>& parameters);

}  // namespace chainfleet
