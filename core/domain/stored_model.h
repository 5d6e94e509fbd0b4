// A TorchScript file that a user stored under a name; content-addressed, read only by workers.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "core/domain/draw.h"
#include "core/domain/tenant.h"

namespace chainfleet {

struct StoredModel {
  std::string name;
  BlobRef object;  // its SHA-256 distinguishes two models with the same name
  absl::Time created_at;
  std::string tenant = kDefaultTenant;  // owner: the first tenant that uploaded the model; not on the wire
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name, Required());
    visit("object", self.object, Required());
    visit("created_at", self.created_at);
  }
};

}  // namespace chainfleet
