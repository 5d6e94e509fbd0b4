#include "worker/numerics/models/architecture.h"

namespace chainfleet {
namespace {

// Reads a list of layers from its start.
class Reader {
 public:
  explicit Reader(const std::vector<PlacedLayer>& layers) : layers_(layers) {}

  bool done() const { return next_ == layers_.size(); }

  // Returns the next layer and advances, if it is of this kind.
  template <typename Kind>
  const PlacedLayer* Take() {
    if (done() || !std::holds_alternative<Kind>(layers_[next_].kind)) return nullptr;
    return &layers_[next_++];
  }

 private:
  const std::vector<PlacedLayer>& layers_;
  size_t next_ = 0;
};

bool IsFused(const ConvLayer& conv, bool first) {
  return conv.bias && conv.stride == 1 && conv.groups == 1 && (conv.kernel == 3 || conv.kernel == 5) &&
         (first || conv.padding == 0);
}

// Reads the leading convolutions with pools. False if the kernels do not support one of them.
bool TakeConvolutions(Reader* reader, Architecture* architecture) {
  while (const PlacedLayer* layer = reader->Take<ConvLayer>()) {
    const auto& conv = std::get<ConvLayer>(layer->kind);
    if (!IsFused(conv, architecture->convolutions.empty())) return false;
    if (architecture->convolutions.empty()) architecture->padding = conv.padding;
    architecture->convolutions.push_back({layer->input[0], conv.out_channels, conv.kernel,
                                          layer->input[1] + 2 * conv.padding, layer->input[2] + 2 * conv.padding});
    const PlacedLayer* relu = reader->Take<ReluLayer>();
    const PlacedLayer* pool = relu == nullptr ? nullptr : reader->Take<MaxPoolLayer>();
    if (pool == nullptr) return false;
    const auto& window = std::get<MaxPoolLayer>(pool->kind);
    if (window.size != 2 || window.stride.value_or(2) != 2 || window.padding != 0) return false;
  }
  return true;
}

}  // namespace

std::optional<Architecture> FusedArchitecture(const NetworkShape& network) {
  Architecture architecture{.input_shape = network.input_shape};
  Reader reader(network.layers);
  if (!TakeConvolutions(&reader, &architecture)) return std::nullopt;
  reader.Take<FlattenLayer>();
  while (const PlacedLayer* layer = reader.Take<LinearLayer>()) {
    if (!std::get<LinearLayer>(layer->kind).bias) return std::nullopt;
    architecture.dense.push_back({NumValues(layer->input), layer->output[0]});
    if (reader.done()) return architecture;
    if (reader.Take<ReluLayer>() == nullptr) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace chainfleet
