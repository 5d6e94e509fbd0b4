#include "client/cli/verbs/follow.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "client/cli/terminal.h"
#include "client/cli/views/job_view.h"

namespace chainfleet {

void DetachOnInterrupt(const std::string& job, const std::string& verb) {
  ExitOnInterrupt(absl::StrCat("\ndetached, the job goes on; to re-attach: chainfleet ", verb, " ", job, "\n"));
}

absl::StatusOr<v1::Job> FollowJob(Client* client, const std::string& job, absl::Duration timeout) {
  LiveText text(stderr);
  v1::Job newest;
  std::string shown;
  CHAINFLEET_RETURN_IF_ERROR(client->WatchJob(job, timeout, [&](const v1::Job& update) {
    if (newest.id().empty()) DetachOnInterrupt(update.id());
    newest = update;
    text.Show(ProgressLine(update, text.width()), PaintStates);
    const int64_t tenth = update.steps_total() == 0 ? 0 : 10 * update.steps_done() / update.steps_total();
    const std::string stage = absl::StrCat(v1::Job::State_Name(update.state()), tenth);
    if (!text.live() && stage != shown) std::fprintf(stderr, "%s\n", ProgressLine(update).c_str());
    shown = stage;
  }));
  return newest;
}

absl::Status OutcomeOf(const v1::Job& job) {
  if (job.state() == v1::Job::SUCCEEDED || job.state() == v1::Job::SUCCEEDED_EARLY) return absl::OkStatus();
  const std::string why = WhyFailed(job);
  return absl::AbortedError(
      absl::StrCat("job ", job.id(), " ended ", v1::Job::State_Name(job.state()), why.empty() ? "" : ": ", why));
}

}  // namespace chainfleet
