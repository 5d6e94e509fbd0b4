// The DrawCatalog over the Dispatcher (names, versions) and the StateStore (segment records).
#pragma once

#include "server/predict/draw_catalog.h"
#include "server/rpc/services.h"

namespace chainfleet {

// The draws of a committed object are left out from now on: logged, counted, told to the dispatcher.
void MarkCorruptDraw(const ServiceParts& parts, const std::string& job, const std::string& object);

// Whether a prediction would find a draw in `version` of the job, or, if that is null, in all that is committed: live,
// not known to be corrupt, and of a chain that has not failed. Reads the store; false if that fails.
bool HasReadableDraws(const ServiceParts& parts, const std::string& job, const Snapshot* version);

class DispatcherDrawCatalog final : public DrawCatalog {
 public:
  explicit DispatcherDrawCatalog(ServiceParts parts) : parts_(std::move(parts)) {}

  void Pin(const DrawQuery& query, std::function<void(absl::StatusOr<PinnedDraws>)> done) override;
  void FindVersion(const std::string& job, int64_t number,
                   std::function<void(absl::StatusOr<std::shared_ptr<const Snapshot>>)> done) override;
  absl::StatusOr<Dataset> GetDataset(const std::string& name) override;
  void MarkCorrupt(const std::string& job, const std::string& object) override;

 private:
  const ServiceParts parts_;
};

}  // namespace chainfleet
