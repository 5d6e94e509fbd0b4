// The forward pass of any list of layers on a CPU, over images in lanes (kernels/lanes.h), for predictions.
//
// No layer uses LibTorch: its kernels choose their order of summation by the number of rows and by a row's position.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/kernels/lane_buffer.h"

namespace chainfleet {

// Not thread-safe: one per thread.
class LaneNetwork {
 public:
  // `network` has layers; dropout is off.
  explicit LaneNetwork(NetworkShape network);

  // Computes y[groups][num_outputs][16] from x[groups][input][16]. `draw`: parameters and statistics in order, no
  // padding.
  void Forward(const float* draw, int64_t groups, const float* x, float* y);

 private:
  class Work;
  class Pass;

  const NetworkShape network_;
  int64_t largest_ = 0;                                   // floats of one example in the widest layer, with padding
  std::vector<std::shared_ptr<LaneBuffer<float>>> idle_;  // activations; free if nothing else points to them
};

}  // namespace chainfleet
