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

// All outlive the adapter.
struct DrawCatalogParts {
  Executor* executor = nullptr;
  StateStore* state = nullptr;
  StateWriter* writer = nullptr;
  Catalog* catalog = nullptr;
  Versions* versions = nullptr;
  Dispatcher* dispatcher = nullptr;
  std::function<void()> count_corrupt_draw;
};

// The draws of a committed object are left out from now on: logged, counted, told to the dispatcher.
void MarkCorruptDraw(const DrawCatalogParts& parts, const std::string& job, const std::string& object);

// Whether a prediction would find a draw in `version` of the job, or, if that is null, in all that is committed: live,
// not known to be corrupt, and of a chain that has not failed. Reads the store; false if that fails.
bool HasReadableDraws(const DrawCatalogParts& parts, const std::string& job, const Snapshot* version);

// The readable draws of one point of one version, by chain, each chain with at least one draw in the version.
using KeptVersions = LoadingCache<std::vector<ChainDraws>>;

// Keeps the segment records of the versions that were pinned last, so that only the first call for a version and point
// reads them from the store. A version never gains draws, and a job that has new ones is pinned to a new version. Draws
// become unreadable, or readable again, by changes that all pass through the StateWriter, which reports the job then.
// States of chains and the choice of the caller are applied at each call.
class DispatcherDrawCatalog final : public DrawCatalog {
 public:
  static constexpr int64_t kMaxKeptBytes = 256 * limits::kMiB;

  // A version whose records are more than `max_kept_bytes` is read at each call. The only catalog of its StateWriter.
  explicit DispatcherDrawCatalog(DrawCatalogParts parts, int64_t max_kept_bytes = kMaxKeptBytes);

  void Pin(const DrawQuery& query, std::function<void(absl::StatusOr<PinnedDraws>)> done) override;
  void FindVersion(const std::string& job, int64_t number,
                   std::function<void(absl::StatusOr<std::shared_ptr<const Snapshot>>)> done) override;
  absl::StatusOr<Dataset> GetDataset(const std::string& name) override;
  void MarkCorrupt(const std::string& job, const std::string& object) override;

 private:
  const DrawCatalogParts parts_;
  const std::shared_ptr<KeptVersions> kept_;
};

}  // namespace chainfleet
