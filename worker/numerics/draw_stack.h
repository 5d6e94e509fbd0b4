// Draws as predictions take them. No torch in this header.
#pragma once

#include <memory>
#include <vector>

#include "core/domain/draw.h"

namespace chainfleet {

// The draws of one chain and one kind, stacked: theta is [num_draws, D] float32 in layout order, statistics of batch
// norm after the D parameters.
struct DrawStack {
  ChainId chain;
  DrawKind kind = DrawKind::kTheta;
  std::vector<double> weights;                                   // [S]
  std::vector<std::shared_ptr<const std::vector<float>>> theta;  // S vectors of D, or more
};

}  // namespace chainfleet
