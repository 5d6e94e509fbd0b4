#include "worker/runtime/session/progress_upload.h"

#include <utility>

#include "core/base/limits.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

Segment DescribeSegment(const SegmentContent& content, const EncodedSegment& encoded, const SegmentPlace& place) {
  Segment segment;
  segment.first_index = content.first_index;
  for (const Draw& draw : content.draws) {
    segment.steps.push_back(draw.step);
    segment.weights.push_back(draw.weight);
  }
  segment.kinds = content.kinds;
  segment.digest = encoded.digest;
  segment.parent_digest = content.parent_digest;
  segment.object = {SegmentObjectName(place.store_incarnation, place.lease.chain, place.lease.epoch, encoded.digest),
                    static_cast<int64_t>(encoded.bytes.size()), Sha256Hex(encoded.bytes)};
  return segment;
}

}  // namespace

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
  const auto resume_size = static_cast<int64_t>(point.inline_bytes.size());
  if (resume_size >= limits::kInlineResumePointBytes) {
    point.object = {ResumeObjectName(place.store_incarnation, commit.chain, commit.lease_epoch, point.sha256),
                    resume_size, point.sha256};
    upload.resume_bytes = std::make_shared<const std::string>(std::exchange(point.inline_bytes, {}));
  }
  if (upload.draws.empty()) return upload;
  SegmentContent content{commit.chain, place.first_index, place.parent_digest, place.kinds,
                         std::exchange(upload.draws, {})};
  EncodedSegment segment = EncodeSegment(content, place.parameters);
  commit.segment = DescribeSegment(content, segment, place);
  upload.segment_bytes = std::make_shared<const std::string>(std::move(segment.bytes));
  return upload;
}

}  // namespace chainfleet
