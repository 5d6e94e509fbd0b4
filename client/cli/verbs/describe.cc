#include <iostream>
#include <memory>

#include "client/cli/verbs/verbs.h"
#include "client/cli/views/job_view.h"

namespace chainfleet {
namespace {

absl::Status Describe(Invocation* run, const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job found, client.GetJob(job));
  CHAINFLEET_ASSIGN_OR_RETURN(const auto versions, client.ListSnapshots(found.id()));
  PrintOne(std::cout, run->format, found, found.id(),
           [&] { return DescribeJob(found, run->clock.Wall(), static_cast<int64_t>(versions.size())); });
  return absl::OkStatus();
}

}  // namespace

void AddDescribe(CLI::App* program, Invocation* run) {
  const auto job = std::make_shared<std::string>();
  CLI::App* verb = AddVerb(program, run, "describe", "All about a job: state, posterior, job file, chains",
                           "  chainfleet describe @latest\n  chainfleet describe fashion-emcmc -o yaml",
                           [=] { return Describe(run, *job); });
  AddJobArgument(verb, job.get());
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
