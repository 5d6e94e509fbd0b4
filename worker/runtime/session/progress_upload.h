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

// The resume point stands at `step`, at or after the last draw and before any later one: no worker re-runs a committed
// draw.
struct ProgressUpload {
  int64_t step = 0;
  std::string resume_point;
  std::vector<Draw> draws;  // one segment; empty: the resume point alone
  ChainStats stats;
  ChainTrace trace;                   // of the steps since the upload before
  std::optional<ChainState> ends_as;  // on the last one under the lease
  std::string reason;

  int64_t size_bytes() const;
};

// Where the next segment of a chain goes: what the committed ones before it fix.
struct SegmentPlace {
  std::string store_incarnation;
  LeaseRef lease;
  std::vector<DrawKind> kinds;
  std::vector<ParameterShape> parameters;
  int64_t first_index = 0;
  DigestHex parent_digest;
};

// Ready to send: the objects are put first, then the commit that names them.
struct EncodedUpload {
  ProgressCommit commit;
  std::shared_ptr<const std::string> segment_bytes;  // of commit.segment->object; null without a segment
  std::shared_ptr<const std::string> resume_bytes;   // of commit.resume_point.object; null when inline
  int64_t size_bytes() const;                        // of everything sent
};

// Encodes and digests: as much work as the draws are long, so off the device's thread.
EncodedUpload EncodeUpload(const SegmentPlace& place, ProgressUpload upload);

}  // namespace chainfleet
