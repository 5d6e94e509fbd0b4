#include "worker/numerics/models/fused_network.h"

#include <algorithm>

#include "worker/numerics/kernels/gather.h"
#include "worker/numerics/kernels/square_sum.h"

namespace chainfleet {
namespace {

constexpr int64_t kPartRows =
    24;  // rows of a dense weight: a multiple of the kernel's block, small enough to distribute

int64_t Groups(int64_t images, int64_t slice) {
  return std::min(NumGroups(images) - slice * kSliceGroups, kSliceGroups);
}

int64_t ScratchSize(const ConvShape& conv) { return conv.out_channels * 4 * conv.pooled_width() * kLanes; }

}  // namespace

NetworkWorkspace::NetworkWorkspace(const Architecture& architecture, int64_t images, bool training, bool norms) {
  const int64_t slices = NumSlices(images), lanes = NumGroups(images) * kLanes;
  const bool dense_input = architecture.convolutions.empty();
  if (!dense_input) staging = LaneBuffer<float>(slices * kLanes * RowStride(architecture.input_size()));
  if (training) unchanged = LaneBuffer<float>(slices * RowStride(architecture.input_size()));
  x = LaneBuffer<float>(lanes * (dense_input ? architecture.input_size() : architecture.convolutions[0].input_size()));
  for (const ConvShape& shape : architecture.convolutions) {
    Conv& conv = convolutions.emplace_back();
    conv.y = LaneBuffer<float>(lanes * shape.output_size());
    conv.largest = LaneBuffer<uint8_t>(lanes * shape.output_size());
    if (!training) continue;
    conv.dy = LaneBuffer<float>(lanes * shape.output_size());
    conv.dweight = LaneBuffer<float>(slices * shape.num_weights() * kLanes);
    conv.dbias = LaneBuffer<float>(slices * shape.out_channels * kLanes);
    conv.scratch = LaneBuffer<float>(slices * ScratchSize(shape));
    if (norms) conv.group = LaneBuffer<float>(slices * (shape.num_weights() + shape.out_channels) * kLanes);
  }
  for (const DenseShape& shape : architecture.dense) {
    Dense& layer = dense.emplace_back();
    layer.y = LaneBuffer<float>(lanes * shape.outputs);
    if (training || (dense_input && dense.size() == 1)) layer.rows = LaneBuffer<float>(lanes * RowStride(shape.inputs));
    if (training || dense.size() == architecture.dense.size()) layer.dy = LaneBuffer<float>(lanes * shape.outputs);
  }
}

FusedNetwork::FusedNetwork(Architecture architecture, std::vector<int64_t> offsets)
    : architecture_(std::move(architecture)), offsets_(std::move(offsets)) {
  const int64_t convolutions = static_cast<int64_t>(architecture_.convolutions.size());
  for (int64_t l = 0; l < convolutions; ++l) parts_.push_back({l, 0, 0});
  for (size_t l = 0; l < architecture_.dense.size(); ++l) {
    const int64_t outputs = architecture_.dense[l].outputs;
    for (int64_t o = 0; o < outputs; o += kPartRows) {
      parts_.push_back({convolutions + static_cast<int64_t>(l), o, std::min(o + kPartRows, outputs)});
    }
  }
}

void FusedNetwork::Gather(const InputRows& rows, const int64_t* ids, int64_t images, int64_t slice,
                          NetworkWorkspace* work, const ImageChange* changes) const {
  const bool dense_input = architecture_.convolutions.empty();
  const int64_t size = architecture_.input_size(), stride = RowStride(size);
  const int64_t first_group = slice * kSliceGroups;
  for (int64_t g = first_group; g < first_group + Groups(images, slice); ++g) {
    float* staged =
        dense_input ? work->dense[0].rows.data() + g * kLanes * stride : work->staging.data() + slice * kLanes * stride;
    const int64_t count = std::min(images - g * kLanes, kLanes);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t image = g * kLanes + i;
      rows.Prefetch(ids[std::min(image + 4, images - 1)]);
      if (changes == nullptr) {
        rows.Read(ids[image], staged + i * stride);
        continue;
      }
      float* const unchanged = work->unchanged.data() + slice * stride;
      rows.Read(ids[image], unchanged);
      const std::vector<int64_t>& shape = architecture_.input_shape;
      ChangeImage(shape[0], shape[1], shape[2], changes[image - slice * kSliceImages], unchanged, staged + i * stride);
    }
    if (dense_input) {
      RowsToLanes(staged, stride, count, size, work->x.data() + g * size * kLanes);
      continue;
    }
    const ConvShape& conv = architecture_.convolutions[0];
    const int64_t pad = architecture_.padding, height = conv.in_height - 2 * pad, width = conv.in_width - 2 * pad;
    float* out = work->x.data() + g * conv.input_size() * kLanes;
    for (int64_t line = 0; line < conv.in_channels * height; ++line) {
      const int64_t y = line / height * conv.in_height + line % height + pad;
      RowsToLanes(staged + line * width, stride, count, width, out + (y * conv.in_width + pad) * kLanes);
    }
  }
}

const float* FusedNetwork::ConvInput(int64_t layer, int64_t group, const NetworkWorkspace& work) const {
  const float* x = layer == 0 ? work.x.data() : work.convolutions[layer - 1].y.data();
  return x + group * architecture_.convolutions[layer].input_size() * kLanes;
}

const float* FusedNetwork::DenseInput(int64_t layer, int64_t group, const NetworkWorkspace& work) const {
  const float* x = layer > 0                            ? work.dense[layer - 1].y.data()
                   : architecture_.convolutions.empty() ? work.x.data()
                                                        : work.convolutions.back().y.data();
  return x + group * architecture_.dense[layer].inputs * kLanes;
}

void FusedNetwork::Forward(const float* theta, int64_t images, int64_t slice, NetworkWorkspace* work) const {
  const int64_t first_group = slice * kSliceGroups, groups = Groups(images, slice);
  const int64_t convolutions = static_cast<int64_t>(architecture_.convolutions.size());
  const int64_t layers = static_cast<int64_t>(architecture_.dense.size());
  for (int64_t g = first_group; g < first_group + groups; ++g) {
    for (int64_t l = 0; l < convolutions; ++l) {
      const ConvShape& shape = architecture_.convolutions[l];
      const int64_t at = g * shape.output_size() * kLanes;
      ConvReluPoolForward(shape, weight(theta, l), bias(theta, l), ConvInput(l, g, *work),
                          work->convolutions[l].y.data() + at, work->convolutions[l].largest.data() + at);
    }
  }
  for (int64_t l = 0; l < layers; ++l) {
    const DenseShape& shape = architecture_.dense[l];
    DenseForward(shape, weight(theta, convolutions + l), bias(theta, convolutions + l),
                 DenseInput(l, first_group, *work), groups, l + 1 < layers,
                 work->dense[l].y.data() + first_group * shape.outputs * kLanes);
  }
}

void FusedNetwork::Backward(const float* theta, int64_t images, int64_t slice, NetworkWorkspace* work,
                            double* squared_norms) const {
  const int64_t first_group = slice * kSliceGroups, groups = Groups(images, slice);
  const int64_t convolutions = static_cast<int64_t>(architecture_.convolutions.size());
  if (squared_norms != nullptr) {
    std::fill(squared_norms + slice * kSliceImages, squared_norms + std::min(images, (slice + 1) * kSliceImages), 0.0);
  }
  for (int64_t l = static_cast<int64_t>(architecture_.dense.size()) - 1; l >= 0; --l) {
    if (squared_norms != nullptr) AddDenseNorms(l, images, slice, *work, squared_norms);
    if (l == 0 && convolutions == 0) return;  // the rows are the input, whose gradient is not needed
    const DenseShape& shape = architecture_.dense[l];
    const float* x = DenseInput(l, first_group, *work);
    float* dx = l > 0 ? work->dense[l - 1].dy.data() : work->convolutions.back().dy.data();
    DenseInputGradient(shape, weight(theta, convolutions + l),
                       work->dense[l].dy.data() + first_group * shape.outputs * kLanes, x, groups,
                       dx + first_group * shape.inputs * kLanes);
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t stride = RowStride(shape.inputs);
      LanesToRows(x + g * shape.inputs * kLanes, shape.inputs,
                  work->dense[l].rows.data() + (first_group + g) * kLanes * stride, stride);
    }
  }
  for (int64_t l = convolutions - 1; l >= 0; --l) ConvBackward(theta, l, images, slice, work, squared_norms);
}

void FusedNetwork::AddDenseNorms(int64_t layer, int64_t images, int64_t slice, const NetworkWorkspace& work,
                                 double* norms) const {
  const DenseShape& shape = architecture_.dense[layer];
  for (int64_t g = slice * kSliceGroups; g < slice * kSliceGroups + Groups(images, slice); ++g) {
    double inputs[kLanes], outputs[kLanes];
    LaneSquareSums(DenseInput(layer, g, work), shape.inputs, inputs);
    LaneSquareSums(work.dense[layer].dy.data() + g * shape.outputs * kLanes, shape.outputs, outputs);
    for (int64_t i = 0; i < std::min(kLanes, images - g * kLanes); ++i) {
      norms[g * kLanes + i] += outputs[i] * (inputs[i] + 1);
    }
  }
}

void FusedNetwork::ConvBackward(const float* theta, int64_t layer, int64_t images, int64_t slice,
                                NetworkWorkspace* work, double* norms) const {
  const ConvShape& shape = architecture_.convolutions[layer];
  NetworkWorkspace::Conv& conv = work->convolutions[layer];
  const int64_t weights = shape.num_weights() * kLanes, biases = shape.out_channels * kLanes;
  float* const dweight = conv.dweight.data() + slice * weights;
  float* const dbias = conv.dbias.data() + slice * biases;
  float* const group = norms == nullptr ? nullptr : conv.group.data() + slice * (weights + biases);
  std::fill_n(dweight, weights, 0.0f);
  std::fill_n(dbias, biases, 0.0f);
  const int64_t first_group = slice * kSliceGroups;
  for (int64_t g = first_group; g < first_group + Groups(images, slice); ++g) {
    const int64_t at = g * shape.output_size() * kLanes;
    float* dx = layer > 0 ? work->convolutions[layer - 1].dy.data() + g * shape.input_size() * kLanes : nullptr;
    if (norms != nullptr) std::fill_n(group, weights + biases, 0.0f);
    ConvReluPoolBackward(shape, weight(theta, layer), ConvInput(layer, g, *work), conv.y.data() + at,
                         conv.largest.data() + at, conv.dy.data() + at, norms == nullptr ? dweight : group,
                         norms == nullptr ? dbias : group + weights, dx,
                         conv.scratch.data() + slice * ScratchSize(shape));
    if (norms == nullptr) continue;
    double squares[kLanes];
    LaneSquareSums(group, shape.num_weights() + shape.out_channels, squares);
    for (int64_t i = 0; i < std::min(kLanes, images - g * kLanes); ++i) norms[g * kLanes + i] += squares[i];
    for (int64_t i = 0; i < weights; ++i) dweight[i] += group[i];
    for (int64_t i = 0; i < biases; ++i) dbias[i] += group[weights + i];
  }
}

void FusedNetwork::GradientPart(int64_t part, int64_t images, const NetworkWorkspace& work, float* gradient) const {
  const auto [layer, first, last] = parts_[part];
  const int64_t convolutions = static_cast<int64_t>(architecture_.convolutions.size());
  float* dweight = gradient + offsets_[2 * layer];
  float* dbias = gradient + offsets_[2 * layer + 1];
  if (layer < convolutions) {
    const ConvShape& shape = architecture_.convolutions[layer];
    SumLanes(work.convolutions[layer].dweight.data(), NumSlices(images), shape.num_weights(), dweight);
    SumLanes(work.convolutions[layer].dbias.data(), NumSlices(images), shape.out_channels, dbias);
    return;
  }
  const NetworkWorkspace::Dense& dense = work.dense[layer - convolutions];
  DenseWeightGradient(architecture_.dense[layer - convolutions], dense.dy.data(), dense.rows.data(), images, first,
                      last, dweight, dbias);
}

}  // namespace chainfleet
