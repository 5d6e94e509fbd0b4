// A prediction that fails counts too, under a version that clients can name.
#pragma once

#include <string>

#include "server/rpc/services.h"

namespace chainfleet {

// Made when a call for `version` (0: the newest) of `job` arrives, and counted once if it is refused or fails, wherever
// that is. Where none was asked for it counts under the newest there was; 0 while the job has none.
class FailureCount {
 public:
  FailureCount(const ServiceParts& parts, const JobBrief& job, int64_t version)
      : clock_(parts.clock),
        statistics_(parts.statistics),
        job_(job.id),
        version_(version > 0 ? version : job.newest_version),
        arrived_(parts.clock->Monotonic()) {}

  void Count() const { statistics_->CountFailure(job_, version_, clock_->Wall(), clock_->Monotonic() - arrived_); }

  // Counts, and ends the call with `status`.
  template <typename Answer>
  void Fail(const Answer& answer, const absl::Status& status) const {
    Count();
    answer->Fail(status);
  }

 private:
  const Clock* clock_;
  InferenceStatistics* statistics_;
  std::string job_;
  int64_t version_;
  absl::Duration arrived_;  // monotonic
};

}  // namespace chainfleet
