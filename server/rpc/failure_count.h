// Counts failed predictions, under a version that clients can name.
#pragma once

#include <string>

#include "server/rpc/services.h"

namespace chainfleet {

// Created when a call for `version` of `job` arrives; counts the call once if it is refused or fails at any later
// point. Version 0 counts under the newest version at arrival, or under 0 while the job has none.
class FailureCount {
 public:
  FailureCount(const ServiceParts& parts, const JobBrief& job, int64_t version)
      : clock_(parts.clock),
        statistics_(parts.statistics),
        job_(job.id),
        version_(version > 0 ? version : job.newest_version),
        arrived_(parts.clock->Monotonic()) {}

  void Count() const { statistics_->CountFailure(job_, version_, clock_->Wall(), clock_->Monotonic() - arrived_); }

  // Counts the failure and ends the call with `status`.
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
