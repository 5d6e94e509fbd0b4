#include <filesystem>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/local_fleet.h"
#include "client/cli/verbs/verbs.h"
#include "core/base/file_system.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kServerGrace = absl::Seconds(20);

absl::Status Down(Invocation* run, const std::string& data_folder) {
  CHAINFLEET_ASSIGN_OR_RETURN(const LocalFleet fleet, LocalFleet::In(data_folder));
  std::error_code error;
  if (!std::filesystem::exists(fleet.run_folder(), error)) {
    if (error) return absl::FailedPreconditionError(absl::StrCat(fleet.run_folder(), ": ", error.message()));
    std::cout << "nothing runs in " << fleet.data_folder() << "\n";
    return absl::OkStatus();
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const auto lock, FileLock::Acquire(fleet.run_folder() + "/lock"));
  // Stop workers first, while the server can still take their resume points. Each may use its whole drain time.
  std::vector<Daemon> daemons = fleet.KnownWorkers();
  daemons.push_back(fleet.server());
  int stopped = 0;
  for (const Daemon& daemon : daemons) {
    const bool is_server = daemon.name() == "server";
    CHAINFLEET_ASSIGN_OR_RETURN(
        const bool was_running,
        daemon.Stop(is_server ? kServerGrace : limits::kDrainDeadline + absl::Seconds(5), &run->clock));
    if (was_running) std::cerr << "stopped " << daemon.name() << "\n";
    stopped += was_running;
  }
  std::cout << (stopped == 0 ? "nothing runs in " : "down; data stay in ") << fleet.data_folder() << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddDown(CLI::App* program, Invocation* run) {
  const auto data_folder = std::make_shared<std::string>(DefaultDataFolder());
  CLI::App* verb =
      AddVerb(program, run, "down", "Stop the workers and the server that `up` started; the data stay",
              "  chainfleet down\n  chainfleet down --data-dir /tmp/try", [=] { return Down(run, *data_folder); });
  verb->add_option("--data-dir", *data_folder, "Data folder given to `up` [" + *data_folder + "]")->option_text("DIR");
}

}  // namespace chainfleet
