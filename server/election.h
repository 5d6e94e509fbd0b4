// Who leads, of several coordinators on one PostgreSQL store: waiting for the lead and keeping it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/store/state_store/postgres_leader.h"

namespace chainfleet {

// True for what --state gives to PostgreSQL.
bool IsPostgres(const std::string& state);

struct Lead {
  std::unique_ptr<PostgresLeader> leader;
  std::unique_ptr<StateStore> store;
};

// Returns when this coordinator leads; until then answers on `listen` as a standby does. `pause` waits between
// attempts and is false when it is time to end: then nothing is returned. Errors of the first attempt end it, later
// ones are logged: a database that is away comes back.
absl::StatusOr<std::optional<Lead>> WaitToLead(const PostgresOptions& options, const std::string& listen,
                                               const std::function<bool(absl::Duration)>& pause);

// Renews the lead from a thread of its own, every third of the term.
class LeadKeeper {
 public:
  // `on_lost` runs at most once, when another leads or the term may have ended unrenewed. `clock` is not owned.
  LeadKeeper(std::unique_ptr<PostgresLeader> leader, absl::Duration term, const Clock* clock,
             std::function<void(const absl::Status&)> on_lost);
  ~LeadKeeper();

 private:
  void Run();

  const std::unique_ptr<PostgresLeader> leader_;
  const absl::Duration term_;
  const Clock* const clock_;
  const std::function<void(const absl::Status&)> on_lost_;
  Mutex mutex_;
  CondVar ending_;
  bool end_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace chainfleet
