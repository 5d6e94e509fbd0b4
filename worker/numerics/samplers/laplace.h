// Laplace's approximation (MacKay, Neural Computation 1992; Daxberger et al., NeurIPS 2021): descent towards
// theta* = argmin U; then one pass over all data, one minibatch a step in stored order, for the Gauss-Newton matrix H
// of the likelihood at theta* (curvature.h); then one network a step from
//
//   N(theta*, T (H + Lambda)^-1)      Lambda: the prior's precision
//
// where H is full, diagonal, or a Kronecker product for each layer. The factors are not part of a resume point: a chain
// that moves to another worker computes them again from theta* in one step. The evidence of the same approximation,
// exact if U is quadratic with its minimum at theta*, is
//
//   log p(data) ~ -U(theta*) + D/2 log 2 pi - 1/2 log det(H + Lambda)      U with the prior's normalising constant
#pragma once

#include <string>
#include <vector>

#include "core/domain/sampler_spec.h"
#include "worker/numerics/samplers/sgd.h"

namespace chainfleet {

struct Laplace {
  Descent descent;
  CurvatureStructure structure = CurvatureStructure::kDiagonal;

  std::vector<std::string> Arenas() const { return descent.Arenas({"theta", "momentum", "draw"}); }
  std::string draw_arena() const { return "draw"; }
  void InitRow(SamplerState*, int64_t) const {}
  Late<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;

 private:
  void TakeCurvature(const StepInputs& inputs, const std::vector<ChainStep>& trained, SamplerState* state) const;
  void Factor(const StepInputs& inputs, const std::vector<ChainStep>& sampling, SamplerState* state) const;
  // Writes `finite` for rows whose precision matrix is not positive definite, and `log_evidence`.
  void Sample(const StepInputs& inputs, const std::vector<ChainStep>& sampling, SamplerState* state,
              std::vector<StepInfo>* info) const;
};

}  // namespace chainfleet
