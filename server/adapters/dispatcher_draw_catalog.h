// The DrawCatalog over the Dispatcher (names, versions) and the StateStore (segment records).
#pragma once

#include <functional>

#include "core/base/executor.h"
#include "core/store/state_store/state_store.h"
#include "server/control/catalog.h"
#include "server/control/dispatcher.h"
#include "server/control/versions.h"
#include "server/predict/serving/draw_catalog.h"

namespace chainfleet {

// All outlive the adapter.
struct DrawCatalogParts {
  Executor* executor = nullptr;
  StateStore* state = nullptr;
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

class DispatcherDrawCatalog final : public DrawCatalog {
 public:
  explicit DispatcherDrawCatalog(DrawCatalogParts parts) : parts_(std::move(parts)) {}

  void Pin(const DrawQuery& query, std::function<void(absl::StatusOr<PinnedDraws>)> done) override;
  void FindVersion(const std::string& job, int64_t number,
                   std::function<void(absl::StatusOr<std::shared_ptr<const Snapshot>>)> done) override;
  absl::StatusOr<Dataset> GetDataset(const std::string& name) override;
  void MarkCorrupt(const std::string& job, const std::string& object) override;

 private:
  const DrawCatalogParts parts_;
};

}  // namespace chainfleet
