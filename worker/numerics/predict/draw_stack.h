// Draws as predictions take them. No torch in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/domain/draw.h"

namespace chainfleet {

// Which committed draw it is, whenever and however often it is read.
struct DrawId {
  DigestHex sha256;   // of its object
  int64_t index = 0;  // among the object's draws of its kind
  bool operator==(const DrawId&) const = default;
};

// The draws of one chain and one kind, stacked: theta is [num_draws, D] float32 in layout order, statistics of batch
// norm after the D parameters.
struct DrawStack {
  ChainId chain;
  DrawKind kind = DrawKind::kTheta;
  std::vector<double> weights;                                   // [S]
  std::vector<std::shared_ptr<const std::vector<float>>> theta;  // S vectors of D, or more
  std::vector<DrawId> ids = {};                                  // [S]; none: known by no name, kept on no device
};

}  // namespace chainfleet
