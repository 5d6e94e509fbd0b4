// Maps lists of layers from proto.
#pragma once

#include <string>
#include <vector>

#include "chainfleet/v1/layers.pb.h"
#include "core/domain/layer_spec.h"
#include "core/wire/field_wire.h"

namespace chainfleet {

using LayersProto = google::protobuf::RepeatedPtrField<v1::Layer>;

void LayersToProto(const LayerList& layers, LayersProto* proto);

// An empty layer, or lists deeper than limits::kMaxLayerDepth, are violations with paths below `path`.
LayerList LayersFromProto(const LayersProto& proto, const FieldPath& path, std::vector<FieldViolation>* violations);

}  // namespace chainfleet
