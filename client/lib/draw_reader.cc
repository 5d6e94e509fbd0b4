#include "client/lib/draw_reader.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

absl::Status Broken(const v1::SegmentRecord& record, const std::string& what) {
  return absl::DataLossError(absl::StrCat("chain ", record.chain().job(), "/", record.chain().index(), ", draws from ",
                                          record.segment().first_index(), ": ", what));
}

}  // namespace

absl::Status ReadDraws(Client* client, const std::vector<v1::SegmentRecord>& segments,
                       const std::function<absl::Status(const CheckedSegment&)>& on_segment) {
  int32_t chain = -1;
  int64_t next_index = 0;
  std::string parent;
  for (const v1::SegmentRecord& record : segments) {
    const v1::Segment& segment = record.segment();
    if (record.chain().index() != chain) {
      chain = record.chain().index();
      next_index = 0;
      parent = FirstParentDigest();
    }
    if (segment.first_index() != next_index) return Broken(record, absl::StrCat("draw ", next_index, " is missing"));
    if (segment.parent_digest() != parent) return Broken(record, "the parent digest is not that of the segment before");
    next_index += segment.steps_size();
    parent = segment.digest();
    if (record.deleted()) continue;
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, client->ReadSegment(record));
    CHAINFLEET_ASSIGN_OR_RETURN(const SegmentContent content, DecodeSegment(bytes));
    if (content.segment.digest != segment.digest())
      return Broken(record, "the content does not have the recorded digest");
    CHAINFLEET_RETURN_IF_ERROR(on_segment({record, bytes, content}));
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
