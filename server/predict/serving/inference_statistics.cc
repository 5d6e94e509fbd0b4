#include "server/predict/serving/inference_statistics.h"

#include <algorithm>

#include "core/base/limits.h"

namespace chainfleet {

void ComputeTimes::Add(const ComputeTimes& other) {
  input += other.input;
  infer += other.infer;
  output += other.output;
}

InferenceCount& InferenceStatistics::Find(const std::string& model, int64_t version, absl::Time now) {
  const std::pair key{model, version};
  const bool fresh = !counts_.contains(key);
  if (fresh && static_cast<int64_t>(counts_.size()) >= limits::kCountedVersions) {
    counts_.erase(std::ranges::min_element(counts_, {}, [](const auto& entry) { return entry.second.last; }));
  }
  InferenceCount& count = counts_[key];
  count.model = model;
  count.version = version;
  count.last = now;
  return count;
}

void InferenceStatistics::CountSuccess(const std::string& model, int64_t version, absl::Time now, int64_t rows,
                                       const RequestTimes& took) {
  MutexLock lock(&mutex_);
  InferenceCount& count = Find(model, version, now);
  ++count.succeeded;
  count.rows += static_cast<uint64_t>(rows);
  count.success.total += took.total;
  count.success.queue += took.queue;
  count.success.compute.Add(took.compute);
}

void InferenceStatistics::CountFailure(const std::string& model, int64_t version, absl::Time now, absl::Duration took) {
  MutexLock lock(&mutex_);
  InferenceCount& count = Find(model, version, now);
  ++count.failed;
  count.fail_time += took;
}

void InferenceStatistics::CountBatch(const std::string& model, int64_t version, absl::Time now, int64_t rows,
                                     const ComputeTimes& took) {
  MutexLock lock(&mutex_);
  InferenceCount& count = Find(model, version, now);
  ++count.executions;
  if (!count.batches.contains(rows) && count.batches.size() >= kBatchSizes) {
    count.batches.erase(
        std::ranges::min_element(count.batches, {}, [](const auto& entry) { return entry.second.executions; }));
  }
  BatchCount& batch = count.batches[rows];
  ++batch.executions;
  batch.compute.Add(took);
}

void InferenceStatistics::Forget(const std::string& model, int64_t version) {
  MutexLock lock(&mutex_);
  std::erase_if(counts_, [&](const auto& entry) {
    return entry.first.first == model && (version == 0 || entry.first.second == version);
  });
}

std::vector<InferenceCount> InferenceStatistics::Of(const std::string& model, int64_t version) const {
  MutexLock lock(&mutex_);
  std::vector<InferenceCount> found;
  for (const auto& [key, count] : counts_) {
    if ((model.empty() || key.first == model) && (version == 0 || key.second == version)) found.push_back(count);
  }
  return found;
}

}  // namespace chainfleet
