#include <iostream>
#include <memory>

#include "client/cli/verbs/follow.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/job_view.h"

namespace chainfleet {
namespace {

absl::Status Wait(Invocation* run, const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job done, FollowJob(&client, job, run->timeout));
  PrintOne(std::cout, run->format, done, done.id(), [&] { return ProgressLine(done) + "\n"; });
  return OutcomeOf(done);
}

}  // namespace

void AddWait(CLI::App* program, Invocation* run) {
  const auto job = std::make_shared<std::string>();
  CLI::App* verb = AddVerb(program, run, "wait",
                           "Wait until a job ends, also across restarts of the server; exit code 1 if it FAILED",
                           "  chainfleet wait @latest --timeout 10m && chainfleet evaluate @latest --dataset test",
                           [=] { return Wait(run, *job); });
  AddJobArgument(verb, job.get());
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
