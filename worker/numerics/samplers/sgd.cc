#include "worker/numerics/samplers/sgd.h"

namespace chainfleet {

Late<StepInfo> UpdateHeavyBall(const StepInputs& inputs, double momentum, ThetaArena* theta, ThetaArena* v) {
  return InfoOf(inputs, RunPass(Pass::kHeavyBall, {theta, v, &inputs.scratch->gradient}, inputs.chains,
                                [&](int64_t row, float* s) {
                                  s[0] = static_cast<float>(momentum);
                                  s[1] = static_cast<float>(inputs.chains[row].step_size);
                                  s[2] = static_cast<float>(PriorPrecision(inputs, row));
                                }));
}

}  // namespace chainfleet
