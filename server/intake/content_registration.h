// Stores and registers an upload after its bytes were checked: protects its objects from garbage collection, writes
// them, and registers the content.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/base/status.h"
#include "server/control/catalog.h"

namespace chainfleet {

// Exactly one of `put` and `fail` is called, once.
struct ContentRegistration {
  std::vector<std::string> objects;  // names of the new objects, or with `repairs` of the existing ones
  bool repairs = false;
  std::function<absl::Status()> store;                 // writes the objects; blocks
  std::function<void(const std::string& upload)> put;  // registers the content and ends the upload
  std::function<void(const absl::Status&)> fail;
};

// Returns at once; the work runs on the executor.
void Register(Executor* executor, Catalog* catalog, ContentRegistration registration);

}  // namespace chainfleet
