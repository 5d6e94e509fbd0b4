// Ids. A job id is name + "-" + 6 base32 characters and is never reused; a chain id is (job id, index).
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

struct ChainId {
  std::string job;  // job id
  int32_t index = 0;
  static void Fields(auto& self, auto&& visit) {
    visit("job", self.job);
    visit("index", self.index);
  }
  auto operator<=>(const ChainId&) const = default;
};

// Returns "fashion-emcmc-a1b2c3/2", for messages and logs.
std::string ToString(const ChainId& id);

// INVALID_ARGUMENT / INVALID_FIELD, of the field `path`, unless `name` is 1-63 of [a-z0-9-], starting with a letter and
// not ending in '-'. `what`: "job", ...
absl::Status CheckName(const std::string& what, const std::string& name, const std::string& path = "name");

// As CheckName, for a name that may be another tenant's: OWNER/NAME.
absl::Status CheckReference(const std::string& what, const std::string& name, const std::string& path = "name");

// Returns `name` + "-" + 6 characters of base32 (a-z, 2-7) from the low 30 bits of `random_bits`.
std::string MakeJobId(const std::string& name, uint64_t random_bits);

}  // namespace chainfleet
