// Laplace's approximation (MacKay, Neural Computation 1992; Daxberger et al., NeurIPS 2021): heavy-ball SGD towards
// theta* = argmin U, one pass over all data for the Gauss-Newton matrix H of the likelihood at its end (curvature.h), a
// batch a step, in stored order, then one network a step from
//
//   N(theta*, T (H + Lambda)^-1)      Lambda: the prior's precision
//
// with H whole, its diagonal, or a Kronecker product for each layer. The factors are no part of a resume point: a chain
// that moves computes them again from theta* in one step.
#pragma once

#include <string>
#include <vector>

#include "core/domain/sampler_spec.h"
#include "worker/numerics/samplers/sgd.h"

namespace chainfleet {

struct Laplace {
  static constexpr const char* kArenas[] = {"theta", "momentum", "draw"};
  CurvatureStructure structure = CurvatureStructure::kDiagonal;
  double momentum = 0;

  std::string draw_arena() const { return "draw"; }
  void InitRow(SamplerState*, int64_t) const {}
  std::vector<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;

 private:
  void TakeCurvature(const StepInputs& inputs, const std::vector<ChainStep>& trained, SamplerState* state) const;
  // False for rows whose precision matrix is no such thing.
  std::vector<bool> Sample(const StepInputs& inputs, const std::vector<ChainStep>& sampling, SamplerState* state) const;
};

}  // namespace chainfleet
