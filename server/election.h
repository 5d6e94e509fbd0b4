// Leader election among coordinators on one PostgreSQL store: waiting for the lead and keeping it.
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
#include "core/tls/tls_files.h"

namespace chainfleet {

// True if --state names a PostgreSQL database.
bool IsPostgres(const std::string& state);

// Warns if `state`, the value of --state, is among the arguments and holds a password. Logs no part of `state`.
void WarnOfPasswordInArguments(const std::string& state, int argc, char** argv);

struct Lead {
  std::unique_ptr<PostgresLeader> leader;
  std::unique_ptr<StateStore> store;
};

struct StandbyAddresses {
  Endpoint grpc, http;  // the address of `http` may be "off"
};

// Returns when this coordinator leads; until then it answers on `listen` as a standby. `pause` waits between attempts;
// if it returns false, the process is ending and the result is nullopt. Returns errors of the first attempt and
// OTHER_STORE. Other errors are logged once for each outage and retried, because the database may come back.
// FAILED_PRECONDITION: this process opens a restored store, or one whose objects were moved, while another coordinator
// leads. `request_ids` makes ids for the calls that the standby answers.
absl::StatusOr<std::optional<Lead>> WaitToLead(const PostgresOptions& options, const StandbyAddresses& listen,
                                               RngKey request_ids, const std::function<bool(absl::Duration)>& pause);

// Renews the lead every third of the term. The destructor gives the lead up: after it nothing may be written.
class LeadKeeper {
 public:
  // `on_lost` runs at most once: when another coordinator leads, or when the term has ended without a renewal, even
  // while a renewal still waits for its answer. Commits are safe anyway, because the store's transactions check the
  // leader, but the new leader needs the resources that this process holds. `executor` has two threads for this object
  // only and ends before it does. Neither `executor` nor `clock` is owned.
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
  absl::Duration renewed_ CHAINFLEET_GUARDED_BY(mutex_);  // monotonic time
  bool lost_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace chainfleet
