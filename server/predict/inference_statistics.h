// How often each version of each model was asked for since the process started, and how long it took.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace chainfleet {

struct InferenceCount {
  std::string model;  // job id
  int64_t version = 0;
  absl::Time last;
  uint64_t rows = 0;  // of the requests that succeeded
  uint64_t succeeded = 0, failed = 0;
  absl::Duration success_time, fail_time;
};

// Thread-safe. Keeps the limits::kCountedVersions that were asked for last.
class InferenceStatistics {
 public:
  void Count(const std::string& model, int64_t version, absl::Time now, absl::Duration took, bool ok, int64_t rows);

  // A version that is deleted, or all of a model's if `version` is 0.
  void Forget(const std::string& model, int64_t version);

  // By model and version; all models if `model` is empty, all versions if `version` is 0.
  std::vector<InferenceCount> Of(const std::string& model, int64_t version) const;

 private:
  mutable Mutex mutex_;
  std::map<std::pair<std::string, int64_t>, InferenceCount> counts_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
