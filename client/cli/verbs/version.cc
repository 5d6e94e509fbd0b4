#include <iostream>
#include <memory>

#include "client/cli/verbs/verbs.h"
#include "client/cli/views/job_view.h"

namespace chainfleet {
namespace {

absl::Status MakeVersion(Invocation* run, const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Snapshot made, client.CreateSnapshot(job));
  PrintOne(std::cout, run->format, made, std::to_string(made.version()),
           [&] { return SnapshotTable({made}, run->clock.Wall()).Render(); });
  return absl::OkStatus();
}

}  // namespace

void AddVersion(CLI::App* program, Invocation* run) {
  const auto job = std::make_shared<std::string>();
  CLI::App* verb = AddVerb(
      program, run, "version", "Make a version of the draws committed so far, or show the newest if it has them all",
      "  chainfleet version @latest\n  chainfleet get versions @latest", [=] { return MakeVersion(run, *job); });
  verb->alias("snapshot");  // its name before 0.1
  AddJobArgument(verb, job.get());
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
