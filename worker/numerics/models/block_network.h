// Outputs of a network for a block of examples under one draw after another, on a CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/dataset/input_rows.h"

namespace chainfleet {

class StoredNetwork;

// The numbers of an example do not depend on the other examples of its block or on its position. Not thread-safe: use
// one per thread, and several threads at once only inside RunSingleThreaded.
class BlockNetwork {
 public:
  virtual ~BlockNetwork() = default;

  // Reads rows [first, first + count), count <= kMaxBlockRows.
  virtual void Read(const InputRows& rows, int64_t first, int64_t count) = 0;
  // Returns [groups of 16][outputs][16] (kernels/lanes.h) for the rows of the last Read, valid until the next call.
  // `draw` holds parameters and statistics of the network, in order, without padding.
  virtual const float* Outputs(const float* draw) = 0;
};

inline constexpr int64_t kMaxBlockRows = 64;

// Uses the fused kernels if they support the network, else its layers over images in lanes. With `script` the network
// is a stored one, which runs StoredNetwork::PassOfRows rows at a time, and `network` is its shape.
std::unique_ptr<BlockNetwork> MakeBlockNetwork(const NetworkShape& network,
                                               std::shared_ptr<const StoredNetwork> script = nullptr);

// One output, weights . x + intercept in double, for the analytic regressions with these `parameters`.
std::unique_ptr<BlockNetwork> MakeLinearBlock(const std::vector<ParameterShape>& parameters);

}  // namespace chainfleet
