#include "server/intake/content_registration.h"

#include <memory>
#include <utility>

namespace chainfleet {

void Register(Executor* executor, Catalog* catalog, ContentRegistration registration) {
  const auto journey = std::make_shared<const ContentRegistration>(std::move(registration));
  const auto store = [catalog, journey](const std::string& upload) {
    if (const absl::Status stored = journey->store(); !stored.ok()) {
      catalog->EndUpload(upload);
      return journey->fail(stored);
    }
    journey->put(upload);
  };
  const auto begun = [executor, journey, store](const absl::StatusOr<std::string>& upload) {
    if (!upload.ok()) return journey->fail(upload.status());
    executor->Schedule([store, upload = *upload] { store(upload); });
  };
  if (journey->repairs) {
    catalog->BeginRepair(journey->objects, begun);
  } else {
    catalog->BeginUpload(journey->objects, begun);
  }
}

}  // namespace chainfleet
