#include "worker/numerics/arena/precision_scope.h"

#include <ATen/Context.h>

namespace chainfleet {
namespace {

void AllowTf32(bool allow) {
  at::globalContext().setAllowTF32CuBLAS(allow);
  at::globalContext().setAllowTF32CuDNN(allow);
}

}  // namespace

PrecisionScope::PrecisionScope(Precision precision, Device device)
    : rounded_(precision == Precision::kTf32 && device.is_cuda()) {
  if (rounded_) AllowTf32(true);
}

PrecisionScope::~PrecisionScope() {
  if (rounded_) AllowTf32(false);
}

}  // namespace chainfleet
