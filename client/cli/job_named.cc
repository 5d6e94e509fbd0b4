#include "client/cli/job_named.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace chainfleet {

absl::StatusOr<NamedJob> FindNamedJob(Client* client, const std::string& name) {
  absl::StatusOr<v1::Job> job = client->GetJob(name);
  if (job.ok()) return NamedJob{*std::move(job)};
  if (!absl::IsNotFound(job.status())) return job.status();
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<v1::Alias> aliases, client->ListAliases());
  const auto alias = std::ranges::find(aliases, name, &v1::Alias::name);
  if (alias == aliases.end()) return job.status();
  CHAINFLEET_ASSIGN_OR_RETURN(v1::Job named, client->GetJob(alias->job_id()));
  return NamedJob{std::move(named), alias->version()};
}

}  // namespace chainfleet
