// Networks with every layer of sequences.
#pragma once

#include "core/domain/layer_spec.h"

namespace chainfleet {

// A block of torch.nn.TransformerEncoderLayer with norm_first and gelu.
inline LayerList EncoderBlock(int64_t width, int64_t heads, int64_t hidden) {
  return {{ResidualLayer{{{LayerNormLayer{}}, {AttentionLayer{.heads = heads}}}, {}}},
          {ResidualLayer{{{LayerNormLayer{}}, {LinearLayer{hidden}}, {GeluLayer{}}, {LinearLayer{width}}}, {}}}};
}

// For images of at least 6 by 6 pixels.
inline LayerList SequenceLayers() {
  const LayerList attend = {{LayerNormLayer{}}, {AttentionLayer{.heads = 3}}};
  const LayerList dense = {{LayerNormLayer{}}, {LinearLayer{8}}, {GeluLayer{}}, {LinearLayer{6, false}}};
  return {{ConvLayer{.out_channels = 6, .kernel = 2, .stride = 2}},
          {ToSequenceLayer{}},
          {PositionLayer{}},
          {ResidualLayer{attend, {}}},
          {ResidualLayer{dense, {}}},
          {Conv1dLayer{.out_channels = 5, .kernel = 4, .stride = 3, .padding = 2}},
          {FlattenLayer{}},
          {ToSequenceLayer{.width = 5}},
          {Conv1dLayer{.out_channels = 4, .kernel = 2, .bias = false}},
          {GlobalAvgPoolLayer{}},
          {LinearLayer{}}};
}

// For bytes as they are stored; 7 is the padding.
inline LayerList TokenLayers() {
  const LayerList attend = {{LayerNormLayer{}}, {AttentionLayer{.heads = 2}}};
  const LayerList dense = {{LayerNormLayer{}}, {LinearLayer{8}}, {TanhLayer{}}, {LinearLayer{6}}};
  return {{EmbeddingLayer{.count = 256, .width = 6, .padding = 7}},
          {PositionLayer{}},
          {ResidualLayer{attend, {}}},
          {ResidualLayer{dense, {}}},
          {GlobalAvgPoolLayer{}},
          {LinearLayer{}}};
}

}  // namespace chainfleet
