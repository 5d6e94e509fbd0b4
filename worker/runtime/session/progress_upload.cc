#include "worker/runtime/session/progress_upload.h"

#include <utility>

#include "core/base/limits.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
int64_t ProgressUpload::size_bytes() const {
  size_t bytes = commit.resume_point.inline_bytes.size();
  for (const Draw& draw : draws) {
    for (const auto& theta : draw.theta) bytes += theta.size() * sizeof(float);
  }
  if (segment_bytes) bytes += segment_bytes->size();
  if (resume_bytes) bytes += resume_bytes->size();
  return static_cast<int64_t>(bytes);
}

ProgressUpload EncodeUpload(const SegmentPlace& place, ProgressUpload upload) {
  ProgressCommit& commit = upload.commit;
  commit.store_incarnation = place.store_incarnation;
  commit.chain = place.lease.chain;
  commit.lease_epoch = place.lease.epoch;
  ResumePoint& point = commit.resume_point;
  point.sha256 = Sha256Hex(point.inline_bytes);
  point.proof.emplace();  // the port signs it
  point.proof->name = ResumeObjectName(place.store_incarnation, commit.chain, commit.lease_epoch, point.sha256);
  point.proof->last_digest = place.parent_digest;
  const auto resume_size = static_cast<int64_t>(point.inline_bytes.size());
  if (resume_size >= limits::kInlineResumePointBytes) {
    point.object = {point.proof->name, resume_size, point.sha256};
    upload.resume_bytes = std::make_shared<const std::string>(std::exchange(point.inline_bytes, {}));
  }
  if (upload.draws.empty()) return upload;
  Segment& segment = commit.segment.emplace();
  segment.first_index = place.first_index;
  segment.kinds = place.kinds;
  segment.parent_digest = place.parent_digest;
  std::string bytes = EncodeSegment(commit.chain, std::exchange(upload.draws, {}), place.parameters, &segment);
  segment.object = {SegmentObjectName(place.store_incarnation, commit.chain, commit.lease_epoch, segment.digest),
                    static_cast<int64_t>(bytes.size()), Sha256Hex(bytes)};
  upload.segment_bytes = std::make_shared<const std::string>(std::move(bytes));
  point.proof->last_digest = segment.digest;
  point.proof->with_draws = true;
  return upload;
}

}  // namespace chainfleet
