// Which of several coordinators on one PostgreSQL database leads, and the StateStore of the one that does.
//
// The row `leader` holds a generation. Every write transaction of a StateStore holds that row FOR KEY SHARE, a takeover
// changes its key: it waits for open writers, and later ones of the old leader find another generation and fail. The
// leader renews the row; a standby takes over when it is `timeout` old by the database's clock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/store/state_store/object_home.h"
#include "core/store/state_store/postgres_connection.h"
#include "core/store/state_store/state_store.h"

namespace chainfleet {

// A leader that has not renewed for so long may be replaced.
inline constexpr absl::Duration kLeaderTerm = absl::Seconds(6);

struct PostgresOptions {
  std::string uri;
  std::string address;            // where clients and workers reach this coordinator
  std::string fresh_incarnation;  // random, used if the store is new or restored
  absl::Duration timeout = kLeaderTerm;
  Opening opening = Opening::kUsual;
  ObjectHome home;  // where this coordinator looks for objects
};

// Not thread-safe; every call may block for a few seconds. Errors as PostgresConnection's, SCHEMA_TOO_NEW, OTHER_STORE.
class PostgresLeader {
 public:
  // Two connections: for electing and renewing, and for the writes of a store to come.
  static absl::StatusOr<std::unique_ptr<PostgresLeader>> Connect(PostgresOptions options);

  struct Election {
    std::unique_ptr<StateStore> store;  // null: another coordinator leads
    std::string leader_address;
  };
  // Takes over if nobody leads, and then makes or migrates the tables. The former leader's line is ended first, so that
  // a transaction it left open ends too. OTHER_STORE of object_home.h comes before all that, also while another leads.
  // After an error this coordinator does not lead, whatever it did before.
  absl::StatusOr<Election> TakeOver();

  // Before `timeout` has passed since the last. UNAVAILABLE / NOT_LEADER: another one has taken over.
  absl::Status Renew();

  // Lets another take over at once. For the end of a process that writes no more.
  absl::Status Resign();

 private:
  explicit PostgresLeader(PostgresOptions options) : options_(std::move(options)) {}
  struct Leading {
    int64_t generation = 0;
    std::string address;
    int64_t backend_pid = 0;
    bool alive = false;  // it renewed in time
  };
  // Leads with `generation`, or only knows who does.
  struct Outcome {
    std::string leader_address;
    int64_t generation = -1;
    std::string incarnation;
    std::unique_ptr<PostgresConnection> reader;
  };
  absl::StatusOr<Outcome> Elect(int writer_pid);
  absl::StatusOr<Leading> FindLeader();
  absl::Status EndWriter(int64_t backend_pid);

  const PostgresOptions options_;
  std::unique_ptr<PostgresConnection> connection_;
  int64_t generation_ = -1;  // led, since a takeover that succeeded
};

}  // namespace chainfleet
