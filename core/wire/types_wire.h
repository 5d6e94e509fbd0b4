// Maps the parts of types.proto that other messages hold. core/wire/field_wire.h maps whole messages.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chainfleet/v1/types.pb.h"
#include "core/base/status.h"
#include "core/domain/dataset.h"
#include "core/domain/draw.h"
#include "core/domain/progress_record.h"
#include "core/domain/stored_model.h"

namespace chainfleet {

v1::InputType ToProto(InputType type);
v1::ChainId ToProto(const ChainId& id);
ChainId FromProto(const v1::ChainId& proto);
v1::BlobRef ToProto(const BlobRef& ref);
BlobRef FromProto(const v1::BlobRef& proto);
v1::ChainStats ToProto(const ChainStats& stats);
ChainStats FromProto(const v1::ChainStats& proto);
v1::SegmentRecord ToProto(const SegmentRecord& record);
v1::Normalisation ToProto(const Normalisation& normalisation);
v1::TargetUnits ToProto(const TargetUnits& units);
v1::StoredModel ToProto(const StoredModel& model);
v1::Dataset ToProto(const Dataset& dataset);

google::protobuf::Timestamp ToProto(absl::Time time);
absl::Time FromProto(const google::protobuf::Timestamp& proto);

}  // namespace chainfleet
