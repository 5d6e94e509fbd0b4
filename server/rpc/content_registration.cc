#include "server/rpc/content_registration.h"

#include <memory>
#include <utility>

namespace chainfleet {

void Register(const ServiceParts& parts, ContentRegistration registration) {
  const auto journey = std::make_shared<const ContentRegistration>(std::move(registration));
  const auto store = [parts, journey](const std::string& upload) {
    if (const absl::Status stored = journey->store(); !stored.ok()) {
      parts.catalog->EndUpload(upload);
      return journey->fail(stored);
    }
    journey->put(upload);
  };
  const auto begun = [parts, journey, store](const absl::StatusOr<std::string>& upload) {
    if (!upload.ok()) return journey->fail(upload.status());
    parts.executor->Schedule([store, upload = *upload] { store(upload); });
  };
  if (journey->repairs) {
    parts.catalog->BeginRepair(journey->objects, begun);
  } else {
    parts.catalog->BeginUpload(journey->objects, begun);
  }
}

}  // namespace chainfleet
