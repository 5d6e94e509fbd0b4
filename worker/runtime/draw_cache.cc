#include "worker/runtime/draw_cache.h"

#include <utility>

#include "core/store/draw_codec/segment_codec.h"

namespace chainfleet {
namespace {

// The fetch has checked the object's own digest. This compares the content with the committed record.
absl::StatusOr<LoadingCache<DecodedDraws>::Loaded> Decode(const std::string& bytes, const Segment& segment) {
  CHAINFLEET_ASSIGN_OR_RETURN(SegmentContent content, DecodeSegment(bytes));
  if (content.segment.digest != segment.digest) {
    return absl::DataLossError("object " + segment.object.name + " does not hold the draws of its record");
  }
  auto decoded = std::make_shared<DecodedDraws>();
  decoded->kinds = content.segment.kinds;
  decoded->draws.resize(decoded->kinds.size());
  for (Draw& draw : content.draws) {
    for (size_t kind = 0; kind < decoded->kinds.size(); ++kind) {
      decoded->draws[kind].push_back(std::make_shared<const std::vector<float>>(std::move(draw.theta[kind])));
    }
  }
  return LoadingCache<DecodedDraws>::Loaded{std::move(decoded), static_cast<int64_t>(bytes.size())};
}

}  // namespace

void DrawCache::Get(const Segment& segment, Done<std::shared_ptr<const DecodedDraws>> done) {
  const auto load = [this, &segment](Done<LoadingCache<DecodedDraws>::Loaded> loaded) {
    fetcher_->Fetch(segment.object, /*on_disk=*/false,
                    [segment, loaded](const absl::StatusOr<std::shared_ptr<const std::string>>& bytes) {
                      if (!bytes.ok()) return loaded(bytes.status());
                      loaded(Decode(**bytes, segment));
                    });
  };
  cache_.Get(segment.object.sha256, load, std::move(done));
}

}  // namespace chainfleet
