#include "core/wire/types_wire.h"

#include "absl/strings/str_cat.h"
#include "core/wire/field_wire.h"

namespace chainfleet {

// The proto's values are the enum's, shifted by one for UNSPECIFIED.
v1::InputType ToProto(InputType type) { return static_cast<v1::InputType>(static_cast<int>(type) + 1); }

v1::ChainId ToProto(const ChainId& id) { return Written<v1::ChainId>(id); }
ChainId FromProto(const v1::ChainId& proto) { return ParsedPlain<ChainId>(proto); }
v1::BlobRef ToProto(const BlobRef& ref) { return Written<v1::BlobRef>(ref); }
BlobRef FromProto(const v1::BlobRef& proto) { return ParsedPlain<BlobRef>(proto); }
v1::ChainStats ToProto(const ChainStats& stats) { return Written<v1::ChainStats>(stats); }
ChainStats FromProto(const v1::ChainStats& proto) { return ParsedPlain<ChainStats>(proto); }
v1::SegmentRecord ToProto(const SegmentRecord& record) { return Written<v1::SegmentRecord>(record); }
v1::Normalisation ToProto(const Normalisation& normalisation) { return Written<v1::Normalisation>(normalisation); }
v1::TargetUnits ToProto(const TargetUnits& units) { return Written<v1::TargetUnits>(units); }
v1::StoredModel ToProto(const StoredModel& model) { return Written<v1::StoredModel>(model); }
v1::Dataset ToProto(const Dataset& dataset) { return Written<v1::Dataset>(dataset); }

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp proto;
  const absl::Duration since_epoch = absl::Floor(time - absl::UnixEpoch(), absl::Seconds(1));
  proto.set_seconds(absl::ToInt64Seconds(since_epoch));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::UnixEpoch() - since_epoch)));
  return proto;
}

absl::Time FromProto(const google::protobuf::Timestamp& proto) {
  return absl::FromUnixSeconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

}  // namespace chainfleet
