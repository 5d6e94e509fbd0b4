#include "worker/numerics/samplers/known_gradient.h"

#include <cmath>

#include "worker/numerics/samplers/full_data.h"
#include "worker/numerics/samplers/row_pass.h"

namespace chainfleet {

std::vector<bool> KnowGradient(const StepInputs& inputs, SamplerState* state, ThetaArena* gradient, ThetaArena* spare) {
  const int64_t rows = state->theta().rows();
  std::vector<bool> finite(rows, true);
  std::vector<int64_t> missing;
  for (int64_t row = 0; row < rows; ++row) {
    if (inputs.chains[row].active && state->numbers[row][kGradientKnown] == 0) missing.push_back(row);
  }
  if (missing.empty()) return finite;
  GradientOverAllData(inputs, state->theta(), spare);
  const auto norms = RunPass(Pass::kDot, {spare, spare}, inputs.chains, [](int64_t, float*) {});
  for (const int64_t row : missing) {
    gradient->CopyRow(row, *spare);
    finite[row] = std::isfinite(norms[row].sum);
    state->numbers[row][kGradientKnown] = finite[row] ? 1 : 0;
  }
  return finite;
}

}  // namespace chainfleet
