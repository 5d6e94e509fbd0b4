// The bytes of a resume point: a safetensors object with the kernel's arenas as tensors "theta", "theta_a", ... [D]
// float32, its numbers as "numbers" float64, and metadata: job, chain, step and run report. Keys, minibatches and
// schedule follow from seed and step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/run_report.h"

namespace chainfleet {

inline constexpr int32_t kResumePointVersion = 2;
inline constexpr int32_t kOldestResumePointVersion = 1;

// A chain between two steps, on the host, in layout order without padding.
struct Checkpoint {
  std::string job;  // id
  int32_t chain = 0;
  int64_t step = 0;                        // steps done
  std::vector<std::string> names;          // names of the arenas, theta first
  std::vector<std::vector<float>> arenas;  // [D] each
  std::vector<double> numbers;             // the kernel's own; absent in version 1
  std::optional<RunReport> report;         // absent before the first measurement, and in files of older builds
  bool operator==(const Checkpoint&) const = default;
};

// Equal checkpoints give equal bytes.
std::string EncodeCheckpoint(const Checkpoint& checkpoint);

// INVALID_ARGUMENT: `bytes` are not a resume point. FAILED_PRECONDITION, with both numbers: the format is newer than
// kResumePointVersion or older than kOldestResumePointVersion.
absl::StatusOr<Checkpoint> DecodeCheckpoint(const std::string& bytes);

// OK if `checkpoint` belongs to this job and chain and has these arenas of `num_parameters`, else INVALID_ARGUMENT.
absl::Status CheckFits(const Checkpoint& checkpoint, const std::string& job, int32_t chain,
                       const std::vector<std::string>& names, int64_t num_parameters);

// INVALID_ARGUMENT: the numbers or arenas of this chain's resume point are not those of its sampler.
absl::Status HoldsAnotherState(const std::string& chain);

}  // namespace chainfleet
