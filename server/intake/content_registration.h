// The way of what users put, once its bytes were looked at, into the two stores: its objects are held so that they are
// no garbage, written, and registered.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/base/status.h"
#include "server/control/catalog.h"

namespace chainfleet {

// Either `put` or `fail` is called, once.
struct ContentRegistration {
  std::vector<std::string> objects;  // names: new ones, or if it `repairs` those of what is there
  bool repairs = false;
  std::function<absl::Status()> store;                 // writes them; blocking
  std::function<void(const std::string& upload)> put;  // registers them, which ends the upload in any case
  std::function<void(const absl::Status&)> fail;
};

// Returns at once; the work is done on the executor.
void Register(Executor* executor, Catalog* catalog, ContentRegistration registration);

}  // namespace chainfleet
