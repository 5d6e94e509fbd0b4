// The life of a coordinator process after its flags are read: it waits to lead, serves, and serves again after a
// restore.
#pragma once

#include <signal.h>

#include <functional>
#include <optional>
#include <string>

#include "server/server.h"

namespace chainfleet {

class Serving {
 public:
  // `port_file` gets the ports; "": none. `signals` are SIGTERM, SIGINT and kBackupCame, which every thread blocks.
  Serving(ServerOptions options, std::string port_file, const sigset_t& signals)
      : options_(std::move(options)), port_file_(std::move(port_file)), signals_(signals) {}

  // Blocks until SIGTERM or SIGINT; `before_end` runs when all calls have ended. Errors of WaitToLead and
  // Server::Start.
  absl::Status Run(const std::function<void()>& before_end);
  // Fills the empty stores from options.backup and looks for every object, without serving. Errors of the functions of
  // Server. CANCELLED: a signal came while another coordinator led.
  absl::Status Restore();

 private:
  // Waits to lead, if the state is in PostgreSQL. False: a signal came.
  absl::StatusOr<bool> WaitToLead();
  absl::Status Start();
  absl::Status Announce();
  // Fills the state from the backup that came while the server ran, or goes on with that of a former process. If the
  // state cannot be filled, the store stays as it was, and the result is OK. After an error the next start goes on.
  absl::Status TakeBackup();
  // The next start finds a store that was filled from a backup.
  void ExpectRestored();
  // The file is there while a store is filled and not yet restored.
  std::string RestoringFile() const { return options_.data_directory + "/restoring"; }
  bool IsAskedToEnd() const;

  ServerOptions options_;
  const std::string port_file_;
  const sigset_t signals_;
  std::optional<Lead> lead_;
  std::unique_ptr<Server> server_;
};

}  // namespace chainfleet
