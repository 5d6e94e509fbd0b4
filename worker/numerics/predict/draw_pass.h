// Rows under draws: the part of a prediction that takes the time, once for each kind of device.
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
  const std::vector<DrawStack>& stacks;  // at least one, of the model's draws
  const RowSource& rows;
  int64_t num_rows = 0;
  const float* targets = nullptr;               // [num_rows], or null
  std::vector<PredictionSums>* sums = nullptr;  // one of each stack
  std::shared_ptr<DeviceRows>* kept = nullptr;  // of these rows, or null
};

// How far a pass has come, for the thread that goes on with it.
struct PassProgress {
  struct Thread {
    int64_t part = 0, left = 0;  // a block of rows and a stack, and how many of its draws are still to be added
    int64_t block = -1;          // that `changed` holds
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
  // Adds what every draw says of every row, each row's draws newest first. False: `pause` stopped it, and a further
  // call with the same work and progress goes on. Throws what LibTorch throws; there is no going on then.
  virtual bool Run(const PassWork& work, const Pause& pause, PassProgress* progress) = 0;
};

// On the threads of a CPU: draw after draw over blocks of kMaxBlockRows rows, each example's numbers alone, so that no
// bit depends on the other rows, on the block or on the threads.
std::unique_ptr<DrawPass> MakeBlockPass(std::shared_ptr<const ServedModel> model);

// Draws stacked, so that one product of each layer serves all of them: the way of a GPU, that of `stacks`. Outputs
// equal MakeBlockPass's up to float32 rounding, not in bits. `model` is a list of layers, no module.
std::unique_ptr<DrawPass> MakeStackedPass(std::shared_ptr<const ServedModel> model, std::shared_ptr<StackCache> stacks);

// The predictor of `model` by that pass.
std::unique_ptr<Predictor> MakePredictor(std::shared_ptr<const ServedModel> model, std::unique_ptr<DrawPass> pass);

}  // namespace chainfleet
