#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/verbs/verbs.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {
namespace {

// After the deadline the server needs one more transaction. A standby that takes over grants the worker kDrainLimit
// again; this does not wait for that.
constexpr absl::Duration kPatienceAfter = absl::Seconds(30), kBetweenLooks = absl::Milliseconds(300);

// The worker's current state. A worker that is gone holds no chains.
absl::StatusOr<v1::Worker> Look(Client* client, const v1::Worker& known) {
  CHAINFLEET_ASSIGN_OR_RETURN(const auto workers, client->ListWorkers());
  const auto found = std::ranges::find_if(workers, [&](const v1::Worker& worker) { return worker.id() == known.id(); });
  if (found != workers.end()) return *found;
  v1::Worker gone = known;
  gone.set_chains(0);
  return gone;
}

absl::Status Drain(Invocation* run, const std::string& id, absl::Duration deadline) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(v1::Worker worker, client.DrainWorker(id, deadline));
  const absl::Duration end = run->clock.Monotonic() + std::min(run->timeout, deadline + kPatienceAfter);
  while (worker.chains() > 0) {
    if (run->clock.Monotonic() > end) {
      return absl::DeadlineExceededError(
          absl::StrCat("worker ", id, " still holds ", worker.chains(),
                       " chains. It hands each back after its next step, or loses it at --deadline. To wait less, "
                       "drain it again with a shorter --deadline, or end its process: the chains then go on from "
                       "their last commit"));
    }
    absl::SleepFor(kBetweenLooks);
    CHAINFLEET_ASSIGN_OR_RETURN(worker, Look(&client, worker));
  }
  PrintOne(std::cout, run->format, worker, worker.id(),
           [&] { return absl::StrCat("worker ", id, " holds no chains and gets none: its process may be ended\n"); });
  return absl::OkStatus();
}

}  // namespace

void AddDrain(CLI::App* program, Invocation* run) {
  const auto worker = std::make_shared<std::string>();
  const auto deadline = std::make_shared<absl::Duration>(kDrainLimit);
  CLI::App* verb =
      AddVerb(program, run, "drain",
              "Drain a worker: move its chains away at resume points and give it no new ones until it is "
              "started again; return when it holds none",
              "  chainfleet drain gpu-7                    # before maintenance; then stop the process\n"
              "  chainfleet drain gpu-7 --deadline 30s     # then move the rest from their last resume points",
              [=] { return Drain(run, *worker, *deadline); });
  verb->add_option("WORKER", *worker, "Worker id, as `get workers` prints it")->required();
  AddDurationOption(
      verb, "--deadline", deadline.get(),
      "Take chains back that the worker still holds after this time; they continue from their last commit [5m]");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
