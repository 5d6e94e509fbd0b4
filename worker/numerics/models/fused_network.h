// A network on a CPU: one chain at a time through the kernels for images in lanes, hand-written backward.
//
// Work is cut into slices of 64 images, except the dense weight gradients, whose sums run over all images, and then
// into parts of the gradient. The shapes alone fix both, so the bits do not depend on the thread that computes them.
// All slices of a pass must be done before its first part.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/numerics/dataset/input_rows.h"
#include "worker/numerics/kernels/augment.h"
#include "worker/numerics/kernels/lane_buffer.h"
#include "worker/numerics/kernels/lanes.h"
#include "worker/numerics/models/architecture.h"

namespace chainfleet {

inline constexpr int64_t kSliceImages = kSliceGroups * kLanes;
inline constexpr int64_t NumSlices(int64_t images) { return (images + kSliceImages - 1) / kSliceImages; }

// Activations and gradients of one chain and up to `images` images. Distinct threads may fill distinct slices.
struct NetworkWorkspace {
  // Without `training` there is room only for Forward, and for the gradient of the logits, which the caller may use.
  // `norms`: also for Backward with squared norms.
  NetworkWorkspace(const Architecture& architecture, int64_t images, bool training, bool norms = false);

  struct Conv {
    LaneBuffer<float> y;               // [group][output_size][16]
    LaneBuffer<uint8_t> largest;       // like y
    LaneBuffer<float> dy;              // like y
    LaneBuffer<float> dweight, dbias;  // [slice][num_weights | out_channels][16]
    LaneBuffer<float> scratch;         // [slice], see ConvReluPoolBackward
    LaneBuffer<float> group;           // [slice][num_weights + out_channels][16]: for one group, for norms
  };
  struct Dense {
    LaneBuffer<float> y, dy;  // [group][outputs][16]
    LaneBuffer<float> rows;   // inputs as [image][RowStride(inputs)]
  };
  // [slice][16][RowStride(input)]: rows before they are put into lanes, for convolutional networks
  LaneBuffer<float> staging;
  LaneBuffer<float> unchanged;  // [slice][RowStride(input)]: an image before augmentation
  LaneBuffer<float> x;          // [group][padded input][16]
  std::vector<Conv> convolutions;
  std::vector<Dense> dense;
};

// Immutable. Thread-safe.
class FusedNetwork {
 public:
  // `offsets[k]`: start of parameter tensor k in theta and in the gradient, in floats.
  FusedNetwork(Architecture architecture, std::vector<int64_t> offsets);

  const Architecture& architecture() const { return architecture_; }

  // Reads the images of `slice`: `ids[i]` is the row of image i, i < images. `changes` are the augmentations of the
  // slice's images, which are [channels, height, width]; null: none.
  void Gather(const InputRows& rows, const int64_t* ids, int64_t images, int64_t slice, NetworkWorkspace* work,
              const ImageChange* changes = nullptr) const;

  // Computes the logits of `slice`, [group][classes][16] at dense.back().y, from the images of Gather.
  void Forward(const float* theta, int64_t images, int64_t slice, NetworkWorkspace* work) const;

  // Propagates the gradient of the logits at dense.back().dy (zero for missing images) back to the first layer, and
  // computes the slice's share of the convolutions' gradients. If `squared_norms` [images] is not null, also computes
  // the squared norm of each image's own gradient: for a dense layer |delta|^2 (|a|^2 + 1); for a convolution that of
  // its weight gradient, which is formed for 16 images at a time and reduced at once.
  void Backward(const float* theta, int64_t images, int64_t slice, NetworkWorkspace* work,
                double* squared_norms = nullptr) const;

  int64_t num_parts() const { return static_cast<int64_t>(parts_.size()); }
  // Writes a part of the gradient. All parts together write every parameter.
  void GradientPart(int64_t part, int64_t images, const NetworkWorkspace& work, float* gradient) const;

 private:
  void AddDenseNorms(int64_t layer, int64_t images, int64_t slice, const NetworkWorkspace& work, double* norms) const;
  void ConvBackward(const float* theta, int64_t layer, int64_t images, int64_t slice, NetworkWorkspace* work,
                    double* norms) const;

  // A layer and, for a dense one, rows [first, last) of its weight.
  struct Part {
    int64_t layer = 0, first = 0, last = 0;
  };
  const float* weight(const float* theta, int64_t layer) const { return theta + offsets_[2 * layer]; }
  const float* bias(const float* theta, int64_t layer) const { return theta + offsets_[2 * layer + 1]; }
  const float* ConvInput(int64_t layer, int64_t group, const NetworkWorkspace& work) const;
  const float* DenseInput(int64_t layer, int64_t group, const NetworkWorkspace& work) const;

  Architecture architecture_;
  std::vector<int64_t> offsets_;
  std::vector<Part> parts_;
};

}  // namespace chainfleet
