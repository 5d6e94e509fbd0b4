#include "worker/numerics/potentials/curvature.h"

#include <ATen/TensorOperators.h>

namespace chainfleet {

void AddTo(at::Tensor* sum, const at::Tensor& term) {
  if (sum->defined()) {
    sum->add_(term);
  } else {
    *sum = term.clone();
  }
}

}  // namespace chainfleet
