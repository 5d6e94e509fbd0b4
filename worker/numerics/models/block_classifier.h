// Class probabilities of a block of images under one draw after another, on a CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/domain/network_shape.h"
#include "worker/numerics/dataset/input_rows.h"

namespace chainfleet {

class ScriptedNetwork;

// Probabilities of the images last read under the draw last seen.
struct BlockScores {
  std::vector<float> probability;     // [images, K]
  std::vector<float> logit;           // [images, K]
  std::vector<float> log_normaliser;  // [images]: log p(k) = logit - log_normaliser
};

// Each image's numbers are the same whatever else is in its block, and wherever in it. Not thread-safe: one per thread;
// on several threads at once only inside RunSingleThreaded.
class BlockClassifier {
 public:
  virtual ~BlockClassifier() = default;

  // Reads rows [first, first + count), count <= kMaxBlockImages.
  virtual void Read(const InputRows& rows, int64_t first, int64_t count) = 0;
  // `draw`: parameters and statistics of the network, in order, no padding.
  virtual const BlockScores& Classify(const float* draw) = 0;
};

inline constexpr int64_t kMaxBlockImages = 64;

// The fused kernels if the network is theirs, else ATen operations. `script`: the network is a module, and `network`
// its shape.
std::unique_ptr<BlockClassifier> MakeBlockClassifier(const NetworkShape& network,
                                                     std::shared_ptr<const ScriptedNetwork> script = nullptr);

}  // namespace chainfleet
