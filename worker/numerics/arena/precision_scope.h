// The precision of products and convolutions on a GPU, for as long as a job's batch is at work.
#pragma once

#include "core/domain/job_spec.h"
#include "worker/numerics/arena/device.h"

namespace chainfleet {

// While it lives, LibTorch multiplies on GPUs as `precision` says; before and after, in float32. The setting is the
// process's: one at a time, which one thread for all batches and predictions of a process gives. Nothing on a CPU.
class PrecisionScope {
 public:
  PrecisionScope(Precision precision, Device device);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  const bool rounded_;
};

}  // namespace chainfleet
