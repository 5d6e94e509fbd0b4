// Caches decoded draws for predictions, by the digest of their object.
#pragma once

#include <memory>
#include <vector>

#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/loading_cache.h"
#include "core/domain/draw.h"
#include "worker/runtime/object_fetcher.h"

namespace chainfleet {

// The tensors of one committed segment: draws[kind position in `kinds`][draw] has D floats in layout order.
struct DecodedDraws {
  std::vector<DrawKind> kinds;
  std::vector<std::vector<std::shared_ptr<const std::vector<float>>>> draws;
};

// Thread-safe. A byte-limited LRU; draws in use by a shard stay alive with it.
class DrawCache {
 public:
  DrawCache(ObjectFetcher* fetcher, Executor* executor, int64_t capacity_bytes = limits::kDrawCacheBytes)
      : fetcher_(fetcher), cache_(capacity_bytes, executor) {}

  // Errors of ObjectFetcher. DATA_LOSS: the object is corrupt: its digest or format is wrong, or it differs from its
  // record.
  void Get(const Segment& segment, Done<std::shared_ptr<const DecodedDraws>> done);

  int64_t held_bytes() const { return cache_.held_bytes(); }
  LoadingCache<DecodedDraws>::Counts counts() const { return cache_.counts(); }

 private:
  ObjectFetcher* const fetcher_;
  LoadingCache<DecodedDraws> cache_;
};

}  // namespace chainfleet
