// Sets the precision of products and convolutions on a GPU while a job's batch runs.
#pragma once

#include "core/domain/job_spec.h"
#include "worker/numerics/arena/device.h"

namespace chainfleet {

// During its life LibTorch multiplies on GPUs with `precision`; before and after, in float32. The setting belongs to
// the process, so only one scope may exist at a time: one thread runs all batches and predictions of a process. No
// effect on a CPU.
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
