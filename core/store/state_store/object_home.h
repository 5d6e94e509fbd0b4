// Where the objects of a state store are: draws found in another place would be missing ones.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// One place of objects. The state store keeps it from its first opening on, and whoever opens it later says where it
// would look for them. As long as there are no jobs, data sets and models any place will do, the last one is kept: a
// mistyped address is put right.
struct ObjectHome {
  std::string id;  // of the place, however it is reached: in S3 its address, of a folder what the folder itself keeps
  std::string address;  // for people, without credentials
  bool moved = false;   // all objects were brought there: the store keeps this place from now on
};

// OK if they are the same place, if either is not said (an empty id) or `mine` is where they were moved.
// FAILED_PRECONDITION / OTHER_STORE naming both places and the ways out.
absl::Status CheckHome(const ObjectHome& kept, const ObjectHome& mine);

}  // namespace chainfleet
