#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "worker/numerics/models/fused_network.h"
#include "worker/numerics/predict/draw_pass.h"
#include "worker/numerics/tensors/single_threaded.h"

namespace chainfleet {
namespace {

class BlockPass final : public DrawPass {
 public:
  explicit BlockPass(std::shared_ptr<const ServedModel> model) : model_(std::move(model)) {}

  // Adds every stack over every block, once. Free threads take the next part, so a delayed thread delays no other.
  // Threads that share a block read it separately.
  bool Run(const PassWork& work, const Pause& pause, PassProgress* progress) override {
    const auto threads = static_cast<size_t>(at::get_num_threads());
    while (threads_.size() < threads) {
      threads_.push_back({model_->make_block(), LaneBuffer<float>(work.sums->front().scratch_size())});
    }
    progress->threads.resize(std::max(threads, progress->threads.size()));
    const int64_t blocks = (work.num_rows + kMaxBlockRows - 1) / kMaxBlockRows;
    const int64_t parts = blocks * static_cast<int64_t>(work.stacks.size());
    RunSingleThreaded(static_cast<int64_t>(threads), [&](int64_t t) {
      AddParts(work, parts, pause, &progress->threads[static_cast<size_t>(t)], &progress->next,
               &threads_[static_cast<size_t>(t)]);
    });
    return progress->next >= parts &&
           std::ranges::all_of(progress->threads, [](const auto& thread) { return thread.left == 0; });
  }

 private:
  struct Thread {
    std::unique_ptr<BlockNetwork> network;
    LaneBuffer<float> scratch;
  };

  // Finishes the thread's interrupted part, then takes further parts until `pause` stops it.
  void AddParts(const PassWork& work, int64_t parts, const Pause& pause, PassProgress::Thread* at,
                std::atomic<int64_t>* next, Thread* thread) const {
    const auto stacks = static_cast<int64_t>(work.stacks.size());
    for (int64_t block_read = -1;;) {
      if (at->left == 0) {
        if ((at->part = (*next)++) >= parts) return;
        at->left = static_cast<int64_t>(work.stacks[static_cast<size_t>(at->part % stacks)].theta.size());
      }
      const int64_t block = at->part / stacks, start = block * kMaxBlockRows;
      const int64_t count = std::min(work.num_rows - start, kMaxBlockRows);
      if (block != std::exchange(block_read, block)) {
        const auto [rows, first] = work.rows.Read(start, count, &at->changed, std::exchange(at->block, block) == block);
        thread->network->Read(rows, first, count);
      }
      const auto stack = static_cast<size_t>(at->part % stacks);
      while (at->left > 0) {
        const int64_t s = --at->left;
        const float* outputs = thread->network->Outputs(work.stacks[stack].theta[static_cast<size_t>(s)]->data());
        AddOutputs(*model_, work, stack, s, start, count, outputs, thread->scratch.data());
        if (pause()) return;
      }
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
