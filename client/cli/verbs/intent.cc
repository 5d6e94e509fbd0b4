#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/job_view.h"

namespace chainfleet {
namespace {

absl::Status SetIntent(Invocation* run, const std::string& job, v1::Job::Intent intent) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job changed, client.SetIntent(job, intent));
  if ((intent == v1::Job::RUN || intent == v1::Job::PAUSE) && IsFinal(changed.state())) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "job ", changed.id(), " has already ended (", v1::Job::State_Name(changed.state()),
                          "): there is nothing to ", intent == v1::Job::RUN ? "resume" : "pause")),
                      "JOB_ENDED");
  }
  PrintOne(std::cout, run->format, changed, changed.id(), [&] { return ProgressLine(changed) + "\n"; });
  return absl::OkStatus();
}

}  // namespace

void AddIntents(CLI::App* program, Invocation* run) {
  struct Verb {
    std::string name;
    v1::Job::Intent intent;
    std::string description;
  };
  for (const Verb& verb :
       {Verb{"pause", v1::Job::PAUSE, "Stop the chains of a job at a resume point and give their workers back"},
        Verb{"resume", v1::Job::RUN, "Resume a paused job from its resume points"},
        Verb{"abort", v1::Job::FINISH, "Stop a job early; keep its draws and serve them (SUCCEEDED_EARLY)"},
        Verb{"cancel", v1::Job::CANCEL, "Stop a job and stop serving it; its draws stay until the job is deleted"}}) {
    const auto job = std::make_shared<std::string>();
    CLI::App* app = AddVerb(program, run, verb.name, verb.description, "  chainfleet " + verb.name + " @latest",
                            [=, intent = verb.intent] { return SetIntent(run, *job, intent); });
    AddJobArgument(app, job.get());
    AddServerOptions(app, run);
    AddOutputOption(app, run);
  }
}

}  // namespace chainfleet
