// The job that a user names by its id, its name or an alias.
#pragma once

#include <cstdint>
#include <string>

#include "client/lib/client.h"

namespace chainfleet {

struct NamedJob {
  v1::Job job;
  int64_t version = 0;  // the version that the alias names; 0: the name is no alias
};

// Looks for an alias if no job has this name. NOT_FOUND.
absl::StatusOr<NamedJob> FindNamedJob(Client* client, const std::string& name);

}  // namespace chainfleet
