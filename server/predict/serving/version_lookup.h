// What the numbers in requests mean, looked up as the requests come.
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
#include "core/domain/snapshot.h"
#include "server/predict/serving/draw_catalog.h"

namespace chainfleet {

// Not thread-safe: `strand` runs Find and what it is given. What it is given outlives it.
//
// At most one look into the catalog per version is under way: those that ask meanwhile share the next one, which begins
// after they asked, so that nobody is told of a version that was deleted before.
class VersionLookup {
 public:
  using Done = std::function<void(absl::StatusOr<std::shared_ptr<const Snapshot>>)>;

  VersionLookup(DrawCatalog* catalog, Strand* strand) : catalog_(catalog), strand_(strand) {}

  // The version that query.version names. Errors are those of DrawCatalog::FindVersion. `owner` keeps this object alive
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
  std::map<Key, Asked> asked_;  // while a look is under way
};

}  // namespace chainfleet
