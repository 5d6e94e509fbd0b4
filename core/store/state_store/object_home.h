// The place where the objects of a state store are. A server that looks elsewhere would report every draw as missing.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// The place of a store's objects. The state store keeps it from its first opening on, and each later opening is
// compared with it. While the store has no jobs, data sets or models, any place is accepted and kept, so that a
// mistyped address can be corrected.
struct ObjectHome {
  std::string id;       // the same however the place is reached: the S3 address, or the id kept in the folder
  std::string address;  // for people, without credentials
  bool moved = false;   // all objects were copied there: the store keeps this place from now on
  static void Fields(auto& self, auto&& visit) {
    visit("objects_id", self.id);
    visit("objects_in", self.address);
  }
};

// OK if the places are the same, if either id is empty (unknown), or if the objects were moved to `mine`.
// FAILED_PRECONDITION / OTHER_STORE, naming both places and the ways out.
absl::Status CheckHome(const ObjectHome& kept, const ObjectHome& mine);

}  // namespace chainfleet
