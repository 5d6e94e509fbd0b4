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

// Of a batch: its requests' inputs put together, the workers' answer, that cut into the requests' rows.
struct ComputeTimes {
  absl::Duration input, infer, output;

  void Add(const ComputeTimes& other);
};

// One request's way through the batcher.
struct RequestTimes {
  absl::Duration total, queue;
  ComputeTimes compute;  // of its batch
};

struct BatchCount {
  uint64_t executions = 0;
  ComputeTimes compute;
};

struct InferenceCount {
  std::string model;  // job id
  int64_t version = 0;
  absl::Time last;
  uint64_t rows = 0;        // of the requests that succeeded
  uint64_t executions = 0;  // batches that did
  uint64_t succeeded = 0, failed = 0;
  RequestTimes success;  // sums
  absl::Duration fail_time;
  std::map<int64_t, BatchCount> batches;  // by rows
};

// Thread-safe. Keeps the limits::kCountedVersions that were asked for last, and of each the kBatchSizes it saw most.
class InferenceStatistics {
 public:
  static constexpr size_t kBatchSizes = 1000;

  void CountSuccess(const std::string& model, int64_t version, absl::Time now, int64_t rows, const RequestTimes& took);
  void CountFailure(const std::string& model, int64_t version, absl::Time now, absl::Duration took);

  // A batch of so many rows, of one or more requests, that the workers answered.
  void CountBatch(const std::string& model, int64_t version, absl::Time now, int64_t rows, const ComputeTimes& took);

  // A version that is deleted, or all of a model's if `version` is 0.
  void Forget(const std::string& model, int64_t version);

  // By model and version; all models if `model` is empty, all versions if `version` is 0.
  std::vector<InferenceCount> Of(const std::string& model, int64_t version) const;

 private:
  InferenceCount& Find(const std::string& model, int64_t version, absl::Time now)
      CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::pair<std::string, int64_t>, InferenceCount> counts_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
