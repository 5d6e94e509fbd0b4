// Leader election among coordinators on one PostgreSQL database, and the StateStore of the leader.
//
// The row `leader` holds a generation. Every write transaction of a StateStore locks that row FOR KEY SHARE, and a
// takeover changes its key. A takeover therefore waits for open writers, and later writers of the old leader find
// another generation and fail. The leader renews the row; a standby takes over when the row is older than `timeout` by
// the database's clock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/store/state_store/object_home.h"
#include "core/store/state_store/postgres_connection.h"
#include "core/store/state_store/state_store.h"

namespace chainfleet {

// A leader that has not renewed for this long may be replaced.
inline constexpr absl::Duration kLeaderTerm = absl::Seconds(6);

struct PostgresOptions {
  std::string uri;
  std::string address;            // at which clients and workers reach this coordinator
  std::string fresh_incarnation;  // random; used if the store is new or restored
  absl::Duration timeout = kLeaderTerm;
  Opening opening = Opening::kUsual;
  ObjectHome home;                             // place of this coordinator's objects
  std::shared_ptr<DatabasePassword> password;  // null: the URI's, or that of libpq's variables and files
};

// Not thread-safe; every call may block for a few seconds. Errors: PostgresConnection's, SCHEMA_TOO_NEW, OTHER_STORE.
class PostgresLeader {
 public:
  // Opens two connections: one for election and renewals, one for the writes of a later store.
  static absl::StatusOr<std::unique_ptr<PostgresLeader>> Connect(PostgresOptions options);

  struct Election {
    std::unique_ptr<StateStore> store;  // null: another coordinator leads
    std::string leader_address;
  };
  // Takes over if there is no leader, then creates or migrates the tables. First ends the former leader's connection,
  // so that its open transaction ends too. OTHER_STORE (object_home.h) is checked before all this, also while another
  // coordinator leads. After an error this coordinator does not lead, even if it did before.
  absl::StatusOr<Election> TakeOver();

  // Called within `timeout` of the last renewal. UNAVAILABLE / NOT_LEADER: another coordinator has taken over.
  absl::Status Renew();

  // Lets another coordinator take over at once. For the end of a process that writes nothing more.
  absl::Status Resign();

 private:
  explicit PostgresLeader(PostgresOptions options) : options_(std::move(options)) {}
  struct Leading {
    int64_t generation = 0;
    std::string address;
    int64_t backend_pid = 0;
    bool alive = false;  // renewed in time
  };
  // This coordinator leads with `generation`, or only knows the leader's address.
  struct Outcome {
    std::string leader_address;
    int64_t generation = -1;
    std::string incarnation;
    std::unique_ptr<PostgresConnection> reader;
  };
  absl::StatusOr<std::unique_ptr<PostgresConnection>> Open(const std::string& name) const;
  absl::StatusOr<Outcome> Elect(int writer_pid);
  absl::StatusOr<Leading> FindLeader();
  absl::Status EndWriter(int64_t backend_pid);

  const PostgresOptions options_;
  std::unique_ptr<PostgresConnection> connection_;
  int64_t generation_ = -1;  // set by the last successful takeover, or -1
};

}  // namespace chainfleet
