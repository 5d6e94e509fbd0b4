// Reads a job's committed draws back and verifies them completely.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "chainfleet/v1/types.pb.h"
#include "client/lib/client.h"
#include "core/base/status.h"
#include "core/store/draw_codec/segment_codec.h"

namespace chainfleet {

// One segment: its record, the bytes of its object (safetensors) and their decoded content.
struct CheckedSegment {
  const v1::SegmentRecord& record;
  const std::string& bytes;
  const SegmentContent& content;
};

// Reads `segments` (of one job, in (chain, index) order) one after the other. Verifies the SHA-256 of the record, the
// digest of the content, the parent digest, and gapless indices. DATA_LOSS says what differs. Skips deleted segments:
// their records still link their neighbours. Stops at the first error, also one of `on_segment`.
absl::Status ReadDraws(Client* client, const std::vector<v1::SegmentRecord>& segments,
                       const std::function<absl::Status(const CheckedSegment&)>& on_segment);

}  // namespace chainfleet
