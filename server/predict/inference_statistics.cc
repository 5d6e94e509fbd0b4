#include "server/predict/inference_statistics.h"

#include <algorithm>

#include "core/base/limits.h"

namespace chainfleet {

void InferenceStatistics::Count(const std::string& model, int64_t version, absl::Time now, absl::Duration took, bool ok,
                                int64_t rows) {
  MutexLock lock(&mutex_);
  InferenceCount& count = counts_[{model, version}];
  count.model = model;
  count.version = version;
  count.last = now;
  ++(ok ? count.succeeded : count.failed);
  (ok ? count.success_time : count.fail_time) += took;
  if (ok) count.rows += static_cast<uint64_t>(rows);
  if (static_cast<int64_t>(counts_.size()) <= limits::kCountedVersions) return;
  counts_.erase(std::ranges::min_element(counts_, {}, [](const auto& entry) { return entry.second.last; }));
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
