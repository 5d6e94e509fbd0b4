// Looks up the versions of the numbers in requests, as the requests arrive.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/executor.h"
#include "core/base/status.h"
#include "core/domain/version.h"
#include "server/predict/serving/draw_catalog.h"

namespace chainfleet {

// Not thread-safe: `strand` runs Find and `done`. The arguments outlive this object.
//
// At most one lookup of a version is in progress. Requests that arrive meanwhile share the next lookup, which begins
// after they arrived, so that no request gets a version that was deleted before.
class VersionLookup {
 public:
  using Done = std::function<void(absl::StatusOr<std::shared_ptr<const Version>>)>;

  VersionLookup(DrawCatalog* catalog, Strand* strand) : catalog_(catalog), strand_(strand) {}

  // Finds the version of query.version. Errors are those of DrawCatalog::FindVersion. `owner` keeps this object alive
  // until `done` has run.
  void Find(const DrawQuery& query, const std::shared_ptr<void>& owner, Done done);

 private:
  using Key = std::pair<std::string, int64_t>;
  struct Asked {
    std::vector<Done> now, next;
  };

  void Look(const Key& key, const std::shared_ptr<void>& owner);

  DrawCatalog* const catalog_;
  Strand* const strand_;
  std::map<Key, Asked> asked_;  // lookups in progress
};

}  // namespace chainfleet
