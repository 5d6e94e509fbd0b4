#include "server/rpc/content_registration.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/limits.h"

namespace chainfleet {
namespace {

// Kept alive by its next step.
struct Journey : std::enable_shared_from_this<Journey> {
  ServiceParts parts;
  ContentRegistration registration;
  int starts = 0;

  void Begin() {
    parts.dispatcher->BeginUpload(
        registration.objects, [self = shared_from_this()](absl::StatusOr<std::string> upload) {
          if (upload.ok()) {
            self->parts.executor->Schedule([self, upload = *upload] { self->Store(upload); });
          } else if (ReasonOf(upload.status()) == "BEING_DELETED" && ++self->starts < limits::kUploadStarts) {
            const absl::Duration wait = std::min(limits::kRetryInitial * (1 << self->starts), limits::kRetryMax);
            self->parts.executor->ScheduleAfter(wait, [self] { self->Begin(); });
          } else {
            self->registration.fail(upload.status());
          }
        });
  }

  void Store(const std::string& upload) {
    if (const absl::Status stored = registration.store(); !stored.ok()) {
      parts.dispatcher->EndUpload(upload);
      return registration.fail(stored);
    }
    registration.put(upload);
  }
};

}  // namespace

void Register(const ServiceParts& parts, ContentRegistration registration) {
  const auto journey = std::make_shared<Journey>();
  journey->parts = parts;
  journey->registration = std::move(registration);
  journey->Begin();
}

}  // namespace chainfleet
