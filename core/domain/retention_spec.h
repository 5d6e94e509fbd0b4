// Rules by which a job's committed draws are deleted, and by which they become a version.
#pragma once

#include <cstdint>
#include <optional>

#include "core/domain/fields.h"

namespace chainfleet {

// Without a rule, all draws are kept until the job is deleted. A draw is deleted if either rule says so, unless a
// version with an alias holds the draw.
struct RetentionSpec {
  std::optional<int64_t> keep_last;   // newest draws of each chain to keep
  std::optional<double> ttl_seconds;  // age since the commit
  static void Fields(auto& self, auto&& visit) {
    visit("keep_last", self.keep_last, AtLeast(1));
    visit("ttl_seconds", self.ttl_seconds, Above(0));
  }
  bool any() const { return keep_last || ttl_seconds; }
  bool operator==(const RetentionSpec&) const = default;
};

// While chains run; the job's end makes a version, too. Without a rule, predictions of the newest version make one.
struct SnapshotsSpec {
  std::optional<int64_t> every_draws;   // draws of all chains together, since the last version
  std::optional<double> every_seconds;  // seconds since the last version, if there are new draws
  static void Fields(auto& self, auto&& visit) {
    visit("every_draws", self.every_draws, AtLeast(1));
    visit("every_seconds", self.every_seconds, AtLeast(1));
  }
  bool any() const { return every_draws || every_seconds; }
  bool operator==(const SnapshotsSpec&) const = default;
};

}  // namespace chainfleet
