// Which committed draws of a job are deleted again, and when those committed so far become a version.
#pragma once

#include <cstdint>
#include <optional>

#include "core/domain/fields.h"

namespace chainfleet {

// None set: all are kept until the job is deleted. A draw goes if either says so, unless a version that an alias names
// holds it.
struct RetentionSpec {
  std::optional<int64_t> keep_last;   // newest draws of each chain
  std::optional<double> ttl_seconds;  // since their commit
  static void Fields(auto& self, auto&& visit) {
    visit("keep_last", self.keep_last, AtLeast(1));
    visit("ttl_seconds", self.ttl_seconds, Above(0));
  }
  bool any() const { return keep_last || ttl_seconds; }
  bool operator==(const RetentionSpec&) const = default;
};

// While chains run, beside the version made when the job ends. None set: predictions of the newest version make one.
struct SnapshotsSpec {
  std::optional<int64_t> every_draws;   // of all chains together, since the last version
  std::optional<double> every_seconds;  // since the last version, if there are new draws
  static void Fields(auto& self, auto&& visit) {
    visit("every_draws", self.every_draws, AtLeast(1));
    visit("every_seconds", self.every_seconds, AtLeast(1));
  }
  bool any() const { return every_draws || every_seconds; }
  bool operator==(const SnapshotsSpec&) const = default;
};

}  // namespace chainfleet
