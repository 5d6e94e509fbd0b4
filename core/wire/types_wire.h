// The pieces of types.proto <-> core/domain. ToProto never fails; FromProto gives INVALID_ARGUMENT with the field's
// path when a peer sends a value that this version does not know.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chainfleet/v1/types.pb.h"
#include "core/base/status.h"
#include "core/domain/chain_state.h"
#include "core/domain/dataset.h"
#include "core/domain/draw.h"
#include "core/domain/progress_record.h"
#include "core/domain/stored_model.h"

namespace chainfleet {

v1::ChainId ToProto(const ChainId& id);
ChainId FromProto(const v1::ChainId& proto);

v1::DrawKind ToProto(DrawKind kind);
absl::StatusOr<DrawKind> FromProto(v1::DrawKind proto);
v1::ChainState ToProto(ChainState state);
absl::StatusOr<ChainState> FromProto(v1::ChainState proto);
v1::InputType ToProto(InputType type);
absl::StatusOr<InputType> FromProto(v1::InputType proto);

// A list of kinds; the violation's path is "kinds".
absl::StatusOr<std::vector<DrawKind>> KindsFromProto(const google::protobuf::RepeatedField<int>& proto);
void KindsToProto(const std::vector<DrawKind>& kinds, google::protobuf::RepeatedField<int>* proto);

v1::BlobRef ToProto(const BlobRef& ref);
BlobRef FromProto(const v1::BlobRef& proto);
v1::Segment ToProto(const Segment& segment);
absl::StatusOr<Segment> FromProto(const v1::Segment& proto);
v1::SegmentRecord ToProto(const SegmentRecord& record);
absl::StatusOr<SegmentRecord> FromProto(const v1::SegmentRecord& proto);
v1::ResumePoint ToProto(const ResumePoint& point);
ResumePoint FromProto(const v1::ResumePoint& proto);
v1::ChainStats ToProto(const ChainStats& stats);
ChainStats FromProto(const v1::ChainStats& proto);
v1::Normalisation ToProto(const Normalisation& normalisation);
Normalisation FromProto(const v1::Normalisation& proto);
v1::TargetUnits ToProto(const TargetUnits& units);
TargetUnits FromProto(const v1::TargetUnits& proto);
v1::StoredModel ToProto(const StoredModel& model);
StoredModel FromProto(const v1::StoredModel& proto);
v1::Dataset ToProto(const Dataset& dataset);
absl::StatusOr<Dataset> FromProto(const v1::Dataset& proto);

google::protobuf::Timestamp ToProto(absl::Time time);
absl::Time FromProto(const google::protobuf::Timestamp& proto);

template <typename T>
void Fill(const std::vector<T>& values, google::protobuf::RepeatedField<T>* proto) {
  proto->Add(values.begin(), values.end());
}
template <typename T>
std::vector<T> FromProto(const google::protobuf::RepeatedField<T>& proto) {
  return {proto.begin(), proto.end()};
}

}  // namespace chainfleet
