#include "core/domain/dataset.h"

#include "core/base/saturating.h"

namespace chainfleet {

int64_t StoredBytes(const Dataset& dataset) {
  int64_t bytes = 0;
  for (const DatasetShard& shard : dataset.shards) bytes = SaturatingAdd(bytes, shard.object.size_bytes);
  return bytes;
}

}  // namespace chainfleet
