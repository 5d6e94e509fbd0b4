// The versions of jobs, the aliases that tenants give them, and the policy by which jobs make versions themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/domain/version.h"
#include "core/domain/worker_protocol.h"
#include "core/store/state_store/state_store.h"
#include "server/control/reply.h"
#include "server/control/state_writer.h"
#include "server/control/views.h"

namespace chainfleet {

// The versions and aliases of a job, for views.
struct VersionNames {
  int64_t newest = 0;                // 0 if there is none
  std::vector<std::string> aliases;  // names of its versions, sorted
};

// An alias and the version that it names now.
struct NamedVersion {
  Alias alias;
  std::shared_ptr<const Version> version;
};

// Thread-safe. Its lock is below the Dispatcher's: methods without a Reply may be called while that lock is held.
class Versions {
 public:
  // `state` is the state that the store loaded. The pointers outlive the executor's last task.
  Versions(const Clock* clock, Executor* executor, StateWriter* writer, StateStore* store, const StoredState& state);
  ~Versions();
  Versions(const Versions&) = delete;

  // The Dispatcher reports a job when it appears and whenever its draws or its end change. The job's policy may then
  // make a version.
  struct JobProgress {
    std::string job;
    std::shared_ptr<const JobPlan> plan;
    int64_t num_draws = 0;  // committed, over all chains
    bool finished = false;
  };
  void OnProgress(JobProgress progress);
  // Records a version that a commit made.
  void Keep(const Version& version);
  // Forgets a purged job.
  void Forget(const std::string& job);
  // `changed` runs, without a lock, after a job got or lost a version or an alias. Set once, before other calls.
  void OnChange(std::function<void(const std::string& job)> changed);

  VersionNames NamesOf(const std::string& job) const;
  // For each of the job's `chains` chains, the number of its first draws that belong to a version with an alias.
  std::vector<int64_t> DrawsHeld(const std::string& job, size_t chains) const;

  // Finds a version; number 0 means the newest. With `refresh`, first makes a new one if draws were committed since the
  // newest, unless there is a version and the job has a policy of its own. NOT_FOUND, FAILED_PRECONDITION / NO_DRAWS.
  void Pin(const std::string& job, int64_t number, bool refresh, const Reply<Version>& done);
  // Makes a version of the draws committed so far, whatever the job's policy. FAILED_PRECONDITION / NO_DRAWS.
  void Create(const std::string& job, const Reply<Version>& done);
  // Deletes a version. FAILED_PRECONDITION / IN_USE names the version's aliases.
  void Delete(const std::string& job, int64_t number, const Reply<bool>& done);

  // `alias.number` 0 means the version that Pin finds with `refresh`. INVALID_ARGUMENT, ALREADY_EXISTS / NAME_TAKEN,
  // RESOURCE_EXHAUSTED / TOO_MANY_ALIASES.
  void SetAlias(const Alias& alias, const Reply<Alias>& done);
  void DeleteAlias(const std::string& tenant, const std::string& name, const Reply<bool>& done);
  std::optional<NamedVersion> FindAlias(const std::string& tenant, const std::string& name) const;
  absl::StatusOr<Page<Alias>> ListAliases(const std::string& tenant, int32_t page_size,
                                          const std::string& page_token) const;
  std::vector<Alias> AliasesOf(const std::string& job) const;

  // Excludes the draws of `object` from predictions from now on. NOT_FOUND.
  void MarkCorrupt(const std::string& job, const std::string& object, const Reply<bool>& done);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace chainfleet
