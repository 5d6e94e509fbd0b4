// The DrawCatalog over the Dispatcher (names, versions) and the StateStore (segment records).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/loading_cache.h"
#include "core/store/state_store/state_store.h"
#include "server/control/catalog.h"
#include "server/control/dispatcher.h"
#include "server/control/state_writer.h"
#include "server/control/versions.h"
#include "server/predict/serving/draw_catalog.h"

namespace chainfleet {

// All parts outlive the adapter.
struct DrawCatalogParts {
  Executor* executor = nullptr;
  StateStore* state = nullptr;
  StateWriter* writer = nullptr;
  Catalog* catalog = nullptr;
  Versions* versions = nullptr;
  Dispatcher* dispatcher = nullptr;
  std::function<void()> count_corrupt_draw;
};

// Excludes the draws of a committed object from now on: logs and counts the object, and tells the dispatcher.
void MarkCorruptDraw(const DrawCatalogParts& parts, const std::string& job, const std::string& object);

// Returns true if a prediction would find a draw in `version` of the job (null: in all committed draws) that is live,
// not marked corrupt, and of a chain that has not failed. Reads the store; false if the read fails.
bool HasReadableDraws(const DrawCatalogParts& parts, const std::string& job, const Version* version);

// The readable draws of one point of one version, by chain, each chain with at least one draw in the version.
using KeptVersions = LoadingCache<std::vector<ChainDraws>>;

// Keeps the segment records of the versions that were pinned last, so that only the first call for a version and point
// reads them from the store. A version never gains draws; a job with new draws is pinned to a new version, of which only
// the new segments are read. Every change that makes draws unreadable or readable passes through the StateWriter, which
// then reports the job. The states of chains and the caller's selection are applied at each call.
class DispatcherDrawCatalog final : public DrawCatalog {
 public:
  static constexpr int64_t kMaxKeptBytes = 256 * limits::kMiB;

  // Reads a version with more than `max_kept_bytes` of records at each call. REQUIRES: one catalog for each
  // StateWriter.
  explicit DispatcherDrawCatalog(DrawCatalogParts parts, int64_t max_kept_bytes = kMaxKeptBytes);

  void Pin(const DrawQuery& query, std::function<void(absl::StatusOr<PinnedDraws>)> done) override;
  void FindVersion(const std::string& job, int64_t number,
                   std::function<void(absl::StatusOr<std::shared_ptr<const Version>>)> done) override;
  absl::StatusOr<Dataset> GetDataset(const std::string& job, const std::string& name) override;
  void MarkCorrupt(const std::string& job, const std::string& object) override;

 private:
  const DrawCatalogParts parts_;
  const std::shared_ptr<KeptVersions> kept_;
};

}  // namespace chainfleet
