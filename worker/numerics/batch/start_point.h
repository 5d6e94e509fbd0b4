// The start of a chain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/rng_key.h"
#include "core/base/status.h"
#include "core/domain/draw.h"
#include "core/domain/init_spec.h"
#include "core/domain/job_spec.h"
#include "core/domain/parameter_shape.h"
#include "core/store/draw_codec/safetensors.h"
#include "worker/numerics/arena/layout.h"
#include "worker/numerics/samplers/kernel.h"

namespace chainfleet {

struct ModelFile;

// theta [D] of chain `index` with key `key`, before its first step: the row of `init.theta` (which has passed
// ValidateForSize), or uniform(-1/sqrt(fan_in), 1/sqrt(fan_in)), with tensors without inputs (of norms) at their
// initial value; plus `init.perturb` times a standard normal. The random numbers are those of kInit, so each chain has
// its own. `init.model` and `init.weights` replace the values of the tensors that the model's file and `weights`, the
// bytes of a safetensors file, have; of a file of draws the last one. INVALID_ARGUMENT: the file is absent, damaged,
// WhyNoStart has an objection, a value is not finite, or the file has other values of a tensor that is a constant of
// the network in `model`, such as the statistics of batch norm in evaluation mode: all chains have those of the model.
absl::StatusOr<std::vector<float>> StartOfChain(const Layout& layout, const InitSpec& init, int32_t index, RngKey key,
                                                const std::string* weights = nullptr, const ModelFile* model = nullptr);

// The draws of a chain that was exported, from its file of `init.weights`: the chain is made of them, not sampled. swa
// and swag instead average them before their first step.
class StoredDraws {
 public:
  // Borrows `file`, the bytes of a safetensors file; no draws for a state_dict or null. `tensors`: the parameters, then
  // the statistics of batch norm. INVALID_ARGUMENT: the file lacks theta_a, which the job keeps, has a value that is no
  // finite float32, or more draws than the job has steps, or the sampler is a Metropolis one, which holds draws.
  static absl::StatusOr<StoredDraws> Read(const std::string* file, const JobSpec& spec,
                                          const std::vector<ParameterShape>& tensors, int64_t num_steps);
  int64_t size() const { return size_; }
  // False if the chain has draws, and none for the state after `step`.
  bool Keeps(int64_t step) const { return size_ == 0 || step <= size_; }
  // Replaces the weight of the draw after its step, and the values of the tensors that the file has: it may lack those
  // of the likelihood, and statistics. `kinds` are those of the draw.
  void Replace(const std::vector<DrawKind>& kinds, const std::vector<ParameterShape>& tensors, Draw* draw) const;

 private:
  // Returns why the draws of `kind` cannot be given, or "".
  std::string WhyNot(DrawKind kind, const std::vector<ParameterShape>& tensors) const;
  bool ReadWeightsOfDraws();  // false: they are damaged

  Safetensors file_;
  int64_t size_ = 0;
  std::vector<double> weights_;
};

// Starts the empty row `row` of `state` at `start` [D]. A Swag kernel has averaged `snapshots` by then.
void StartRow(const Kernel& kernel, const std::vector<float>& start, const StoredDraws& snapshots, int64_t row,
              SamplerState* state);

}  // namespace chainfleet
