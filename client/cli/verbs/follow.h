// Follows a job until it is final, with its progress on stderr.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "chainfleet/v1/jobs.pb.h"
#include "client/lib/client.h"
#include "core/base/status.h"

namespace chainfleet {

// Returns the final job. A terminal shows one line that is redrawn in place; other outputs get a line per tenth of the
// work and per change of state. Ctrl-C detaches. Errors of Client::WatchJob.
absl::StatusOr<v1::Job> FollowJob(Client* client, const std::string& job, absl::Duration timeout);

// OK if the job SUCCEEDED (also early); else ABORTED with the reasons of its chains.
absl::Status OutcomeOf(const v1::Job& job);

// From now on Ctrl-C prints how to re-attach to `job` by `verb`.
void DetachOnInterrupt(const std::string& job, const std::string& verb = "watch");

}  // namespace chainfleet
