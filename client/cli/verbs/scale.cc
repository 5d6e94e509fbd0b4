#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "client/cli/verbs/verbs.h"
#include "client/cli/views/job_view.h"

namespace chainfleet {
namespace {

absl::Status AddChains(Invocation* run, const std::string& job, int32_t chains) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job scaled, client.ScaleJob(job, chains));
  PrintOne(std::cout, run->format, scaled, scaled.id(), [&] { return ProgressLine(scaled) + "\n"; });
  return absl::OkStatus();
}

}  // namespace

void AddScale(CLI::App* program, Invocation* run) {
  struct Options {
    std::string job;
    int32_t chains = 0;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb =
      AddVerb(program, run, "scale", "Add chains to a running or paused job; existing chains are unchanged",
              "  chainfleet scale @latest --chains 8      # eight in all",
              [=] { return AddChains(run, options->job, options->chains); });
  AddJobArgument(verb, &options->job);
  verb->add_option("--chains", options->chains, "Total number of chains")->required()->check(CountAtLeast(1));
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
