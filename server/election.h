// Who leads, of several coordinators on one PostgreSQL store: waiting for the lead and keeping it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "core/base/rng_key.h"
#include "core/store/state_store/postgres_leader.h"

namespace chainfleet {

// True for what --state gives to PostgreSQL.
bool IsPostgres(const std::string& state);

struct Lead {
  std::unique_ptr<PostgresLeader> leader;
  std::unique_ptr<StateStore> store;
};

// Returns when this coordinator leads; until then answers on `listen` as a standby does. `pause` waits between
// attempts and is false when it is time to end: then nothing is returned. Errors of the first attempt and OTHER_STORE
// end it, other later ones are logged, once for each outage: a database that is away comes back. FAILED_PRECONDITION if
// it opens a restored store, or one whose objects were moved, while another coordinator leads. `request_ids`: of calls
// that are told who leads.
absl::StatusOr<std::optional<Lead>> WaitToLead(const PostgresOptions& options, const std::string& listen,
                                               RngKey request_ids, const std::function<bool(absl::Duration)>& pause);

// Renews the lead every third of the term, and gives it up when it is destroyed: by then nothing may be written any
// more.
class LeadKeeper {
 public:
  // `on_lost` runs at most once, when another leads or the term has ended unrenewed, even while a renewal still waits
  // for its answer: what commits is safe anyhow (the store's transactions check who leads), but whoever takes over
  // needs what this process holds. `executor` has two threads for this alone and ends before this does; neither it nor
  // `clock` is owned.
  LeadKeeper(std::unique_ptr<PostgresLeader> leader, absl::Duration term, const Clock* clock, Executor* executor,
             std::function<void(const absl::Status&)> on_lost);
  ~LeadKeeper();

 private:
  void Renew();
  void WatchTerm();
  void Lose(const absl::Status& status);

  const std::unique_ptr<PostgresLeader> leader_;
  const absl::Duration term_;
  const Clock* const clock_;
  Executor* const executor_;
  const std::function<void(const absl::Status&)> on_lost_;
  Mutex mutex_;
  absl::Duration renewed_ CHAINFLEET_GUARDED_BY(mutex_);  // on the monotonic clock
  bool lost_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace chainfleet
