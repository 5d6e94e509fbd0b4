// One upload of a chain's progress: draws, and the resume point that is committed with them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/progress_record.h"
#include "core/store/draw_codec/segment_codec.h"
#include "worker/runtime/session/held_chains.h"

namespace chainfleet {

// The resume point is at or after the last draw and before any later one, so no worker re-runs a committed
// draw.
struct ProgressUpload {
  // Until it is encoded, resume_point.inline_bytes holds the whole state, however large, and there is no segment.
  ProgressCommit commit;
  std::vector<Draw> draws;  // draws of one segment; empty: the resume point alone
  // Set when it is encoded. The objects are put first, then the commit that names them.
  std::shared_ptr<const std::string> segment_bytes;  // bytes of commit.segment->object; null without a segment
  std::shared_ptr<const std::string> resume_bytes;   // bytes of commit.resume_point.object; null when inline

  int64_t size_bytes() const;  // size of the draws or of everything sent
};

// The place of a chain's next segment, fixed by the committed ones before it.
struct SegmentPlace {
  std::string store_incarnation;
  LeaseRef lease;
  std::vector<DrawKind> kinds;
  std::vector<ParameterShape> parameters;
  int64_t first_index = 0;
  DigestHex parent_digest;
};

// Encodes and digests. The work grows with the draws, so do not call it on the device's thread.
ProgressUpload EncodeUpload(const SegmentPlace& place, ProgressUpload upload);

}  // namespace chainfleet
