// Evaluates rows under draws: the expensive part of a prediction, implemented for each kind of device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "worker/numerics/predict/draw_stack.h"
#include "worker/numerics/predict/prediction_sums.h"
#include "worker/numerics/predict/predictor.h"
#include "worker/numerics/predict/row_source.h"
#include "worker/numerics/predict/served_model.h"

namespace chainfleet {

struct PassWork {
  const std::vector<DrawStack>& stacks;  // at least one, with draws of the model
  const RowSource& rows;
  int64_t num_rows = 0;
  const float* targets = nullptr;               // [num_rows], or null
  std::vector<PredictionSums>* sums = nullptr;  // one per stack
  std::shared_ptr<DeviceRows>* kept = nullptr;  // for these rows, or null
};

// The progress of a pass, for the thread that continues it.
struct PassProgress {
  struct Thread {
    int64_t part = 0, left = 0;  // a block of rows and a stack, and how many of its draws are not added yet
    int64_t block = -1;          // the block in `changed`
    std::vector<float> changed;  // rows as RowSource::Read leaves them
  };
  std::vector<Thread> threads;
  std::atomic<int64_t> next = 0;  // the first part that no thread has taken
};

// Adds the outputs of draw `s` of a stack for rows [start, start + count), `outputs` [groups of 16][K][16]
// (kernels/lanes.h), to the stack's sums. `scratch` as PredictionSums::Add takes it. Threads may add distinct rows at
// once.
void AddOutputs(const ServedModel& model, const PassWork& work, size_t stack, int64_t s, int64_t start, int64_t count,
                const float* outputs, float* scratch);

// Keeps buffers between calls. Not thread-safe.
class DrawPass {
 public:
  virtual ~DrawPass() = default;
  // Adds the outputs of every draw for every row, newest draw first. False: `pause` stopped it, and another call with
  // the same work and progress continues. Throws LibTorch's exceptions; the pass cannot continue then.
  virtual bool Run(const PassWork& work, const Pause& pause, PassProgress* progress) = 0;
};

// Runs on the threads of a CPU: draw after draw over blocks of kMaxBlockRows rows. Each example is computed separately,
// so no bit depends on the other rows, on the block or on the threads.
std::unique_ptr<DrawPass> MakeBlockPass(std::shared_ptr<const ServedModel> model);

// Stacks draws, so that one product of each layer serves all of them; for the GPU of `stacks`. Outputs equal those of
// MakeBlockPass up to float32 rounding, not in bits. REQUIRES: `model` is a list of layers, not a module.
std::unique_ptr<DrawPass> MakeStackedPass(std::shared_ptr<const ServedModel> model, std::shared_ptr<StackCache> stacks);

// A predictor of `model` that uses `pass`.
std::unique_ptr<Predictor> MakePredictor(std::shared_ptr<const ServedModel> model, std::unique_ptr<DrawPass> pass);

}  // namespace chainfleet
