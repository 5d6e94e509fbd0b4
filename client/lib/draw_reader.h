// Reading a job's committed draws back, with everything that can be checked about them checked.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "chainfleet/v1/types.pb.h"
#include "client/lib/client.h"
#include "core/base/status.h"
#include "core/store/draw_codec/segment_codec.h"

namespace chainfleet {

// One segment: its record, the bytes of its object (safetensors) and what they hold.
struct CheckedSegment {
  const v1::SegmentRecord& record;
  const std::string& bytes;
  const SegmentContent& content;
};

// Reads `segments` (those of one job, in (chain, index) order) one after the other. Each has the SHA-256 of its record,
// the digest that its content gives, the digest of its predecessor as parent, and indices without a gap; DATA_LOSS says
// which does not. Deleted segments are passed over: their records still link. Stops at the first error, also of
// `on_segment`.
absl::Status ReadDraws(Client* client, const std::vector<v1::SegmentRecord>& segments,
                       const std::function<absl::Status(const CheckedSegment&)>& on_segment);

}  // namespace chainfleet
