#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/verbs.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kUsualPatience = absl::Minutes(5), kBetweenLooks = absl::Milliseconds(300);

// The worker as it is now; one that is gone holds nothing.
absl::StatusOr<v1::Worker> Look(Client* client, const v1::Worker& known) {
  CHAINFLEET_ASSIGN_OR_RETURN(const auto workers, client->ListWorkers());
  const auto found = std::ranges::find_if(workers, [&](const v1::Worker& worker) { return worker.id() == known.id(); });
  if (found != workers.end()) return *found;
  v1::Worker gone = known;
  gone.set_chains(0);
  return gone;
}

absl::Status Drain(Invocation* run, const std::string& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(v1::Worker worker, client.DrainWorker(id));
  const absl::Duration end = run->clock.Monotonic() + std::min(run->timeout, kUsualPatience);
  while (worker.chains() > 0) {
    if (run->clock.Monotonic() > end) {
      return absl::DeadlineExceededError(absl::StrCat("worker ", id, " still holds ", worker.chains(),
                                                      " chains: it gives them back after their next step; repeat this, "
                                                      "or end its process, and they go on from their last commit"));
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
  CLI::App* verb = AddVerb(program, run, "drain",
                           "Take a worker's chains away at resume points, and give it no others until it is started "
                           "again; returns once it holds none",
                           "  chainfleet drain gpu-7                    # before maintenance; then stop the process",
                           [=] { return Drain(run, *worker); });
  verb->add_option("WORKER", *worker, "Its id, as `get workers` has it")->required();
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
