// Counts the requests for each version of each model since the process started, and their durations.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace chainfleet {

// Durations of a batch: joining its requests' inputs, the workers' answer, splitting the answer into the requests'
// rows.
struct ComputeTimes {
  absl::Duration input, infer, output;

  void Add(const ComputeTimes& other);
};

// Durations of one request in the batcher.
struct RequestTimes {
  absl::Duration total, queue;
  ComputeTimes compute;  // for the request's batch
};

struct BatchCount {
  uint64_t executions = 0;
  ComputeTimes compute;
};

struct InferenceCount {
  std::string model;  // job id
  int64_t version = 0;
  absl::Time last;
  uint64_t rows = 0;        // in successful requests
  uint64_t executions = 0;  // successful batches
  uint64_t succeeded = 0, failed = 0;
  RequestTimes success;  // sums
  absl::Duration fail_time;
  std::map<int64_t, BatchCount> batches;  // by rows
};

// Keeps the limits::kCountedVersions most recently requested versions, and for each its kBatchSizes most frequent
// sizes. Thread-safe.
class InferenceStatistics {
 public:
  static constexpr size_t kBatchSizes = 1000;

  void CountSuccess(const std::string& model, int64_t version, absl::Time now, int64_t rows, const RequestTimes& took);
  void CountFailure(const std::string& model, int64_t version, absl::Time now, absl::Duration took);

  // Counts a batch of `rows` rows, of one or more requests, that the workers answered.
  void CountBatch(const std::string& model, int64_t version, absl::Time now, int64_t rows, const ComputeTimes& took);

  // Forgets a deleted version, or all versions of a model if `version` is 0.
  void Forget(const std::string& model, int64_t version);

  // Sorted by model and version; all models if `model` is empty, all versions if `version` is 0.
  std::vector<InferenceCount> Of(const std::string& model, int64_t version) const;

 private:
  InferenceCount& Find(const std::string& model, int64_t version, absl::Time now)
      CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::pair<std::string, int64_t>, InferenceCount> counts_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
