#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "worker/numerics/models/fused_network.h"
#include "worker/numerics/models/single_threaded.h"
#include "worker/numerics/predict/draw_pass.h"

namespace chainfleet {
namespace {

class BlockPass final : public DrawPass {
 public:
  explicit BlockPass(std::shared_ptr<const ServedModel> model) : model_(std::move(model)) {}

  // Every stack over every block, once. They go to whoever is free: a thread that is held up by what else the machine
  // does holds up no other. Threads that share a block each read it.
  void Run(const PassWork& work) override {
    while (static_cast<int64_t>(threads_.size()) < at::get_num_threads()) {
      threads_.push_back({model_->make_block(), LaneBuffer<float>(work.sums->front().scratch_size()), {}});
    }
    const int64_t n = work.num_rows, blocks = (n + kMaxBlockRows - 1) / kMaxBlockRows;
    const auto stacks = static_cast<int64_t>(work.stacks.size());
    std::atomic<int64_t> next = 0;
    RunSingleThreaded(at::get_num_threads(), [&](int64_t t) {
      Thread* const thread = &threads_[static_cast<size_t>(t)];
      int64_t block_read = -1;
      for (int64_t part; (part = next++) < blocks * stacks;) {
        const int64_t block = part / stacks, start = block * kMaxBlockRows, count = std::min(n - start, kMaxBlockRows);
        if (block != std::exchange(block_read, block)) {
          const auto [rows, at] = work.rows.Read(start, count, &thread->changed);
          thread->network->Read(rows, at, count);
        }
        AddBlock(work, static_cast<size_t>(part % stacks), start, count, thread);
      }
    });
  }

 private:
  struct Thread {
    std::unique_ptr<BlockNetwork> network;
    LaneBuffer<float> scratch;
    std::vector<float> changed;  // [block of rows, row_size], before normalisation
  };

  // All draws of a stack over the rows [start, start + count) that the thread has read.
  void AddBlock(const PassWork& work, size_t stack, int64_t start, int64_t count, Thread* thread) const {
    const DrawStack& draws = work.stacks[stack];
    for (auto s = static_cast<int64_t>(draws.theta.size()) - 1; s >= 0; --s) {
      const float* draw = draws.theta[static_cast<size_t>(s)]->data();
      const float* outputs = thread->network->Outputs(draw);
      AddOutputs(*model_, work, stack, s, start, count, outputs, thread->scratch.data());
    }
  }

  const std::shared_ptr<const ServedModel> model_;
  std::vector<Thread> threads_;
};

}  // namespace

std::unique_ptr<DrawPass> MakeBlockPass(std::shared_ptr<const ServedModel> model) {
  return std::make_unique<BlockPass>(std::move(model));
}

}  // namespace chainfleet
