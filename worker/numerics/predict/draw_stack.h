// Draws as input of predictions. This header includes no torch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/domain/draw.h"

namespace chainfleet {

// Identifies a committed draw.
struct DrawId {
  DigestHex sha256;   // digest of its object
  int64_t index = 0;  // index among the object's draws of its kind
  bool operator==(const DrawId&) const = default;
};

// The stacked draws of one chain and kind: theta is [num_draws, D] float32 in layout order, with batch-norm statistics
// after the D parameters.
struct DrawStack {
  ChainId chain;
  DrawKind kind = DrawKind::kTheta;
  std::vector<double> weights;                                   // [S]
  std::vector<std::shared_ptr<const std::vector<float>>> theta;  // S vectors of D, or more
  std::vector<DrawId> ids = {};  // [S]; empty: the draws have no identity and are not cached on a device
};

}  // namespace chainfleet
