// Keys by which objects are encrypted at rest.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

struct ObjectKey {
  std::string id;
  std::string secret;  // 32 bytes
  std::string tenant;  // empty: for all tenants without a key of their own
  bool operator==(const ObjectKey&) const = default;
};

// Immutable.
class ObjectKeys {
 public:
  ObjectKeys() = default;
  // Parses lines ID KEY [TENANT], where KEY has 64 hex digits; empty lines and those that begin with # do not count.
  // INVALID_ARGUMENT names the line, never the key.
  static absl::StatusOr<ObjectKeys> Parse(const std::string& text);

  bool empty() const { return keys_.empty(); }
  bool operator==(const ObjectKeys&) const = default;
  // Returns the first key of `tenant`, else the first one for all. FAILED_PRECONDITION / NO_DRAW_KEY.
  absl::StatusOr<const ObjectKey*> KeyOf(const std::string& tenant) const;
  // Returns null for an unknown id.
  const ObjectKey* Find(const std::string& id) const;

 private:
  std::vector<ObjectKey> keys_;
};

}  // namespace chainfleet
