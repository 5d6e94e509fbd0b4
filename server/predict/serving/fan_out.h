// One call's rows over the workers: cut into blocks, each block's chains into one shard per worker, a few blocks at a
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "server/predict/serving/draw_catalog.h"
#include "server/predict/serving/predict_priority.h"
#include "server/predict/serving/shard_queue.h"

namespace chainfleet {

struct RowBlock {
  int64_t first_row = 0;
  int64_t num_rows = 0;
};

// Not thread-safe: lives in a call, whose strand runs every method and both callbacks.
class FanOut {
 public:
  struct Plan {
    std::shared_ptr<const PinnedDraws> draws;  // null: all that are pinned
    std::vector<DrawKind> kinds;
    int64_t num_rows = 0;
    std::function<void(const RowBlock&, ShardRequest*)> set_rows;  // fills in inputs, or rows of a data set
    bool needs_all = true;                                         // the first shard that fails ends it
    bool members = false;                                          // also what each draw says
    int64_t rows_per_block = 0;                                    // 0: as RowsPerBlock says
    std::string trace_id = {};                                     // of its shards
    PredictPriority priority = PredictPriority::kNormal;           // likewise, if they are a prediction's
    absl::Duration deadline = absl::InfiniteDuration();            // monotonic: as ShardQueue::Submit takes it
  };
  struct Events {
    // Once per block, in the order they finish; sums of (chain, kind) in any order. Unless needs_all, some are missing
    // if a shard failed or Stop came first.
    std::function<void(const RowBlock&, std::vector<PartialPrediction>)> block;
    // Last of all: OK, the first shard's error, or what Stop was given.
    std::function<void(const absl::Status&)> end;
    // Before `block`, of shards that ask for flatness: that of their chains, in any order. May be empty else.
    std::function<void(std::vector<Flatness>)> flatness = nullptr;
  };

  // The owner of this object is kept alive by the shards under way. Corrupt objects are told to `catalog`.
  FanOut(std::weak_ptr<void> owner, Strand* strand, ShardQueue* queue, DrawCatalog* catalog, Plan plan, Events events);

  // Begins blocks while there is room for them, or ends if all are done. Called once from outside, to start.
  void Advance();
  // Cancels the shards under way and ends; no effect after the end.
  void Stop(const absl::Status& status);

 private:
  struct Block {
    RowBlock rows;
    std::vector<uint64_t> tickets;
    int64_t pending = 0;
    std::vector<PartialPrediction> partials;
    std::vector<Flatness> flatness;
  };

  void BeginBlock();
  void OnShard(int64_t first_row, absl::StatusOr<ShardResult> result);
  void End();

  const std::weak_ptr<void> owner_;
  Strand* const strand_;
  ShardQueue* const queue_;
  DrawCatalog* const catalog_;
  const Plan plan_;
  const Events events_;
  const int64_t rows_per_block_;
  int64_t next_row_ = 0;
  std::map<int64_t, Block> open_;  // by first row
  absl::Status status_;
  bool ended_ = false;
};

// Rows of one block: inputs and the sums of a chain and kind stay below limits::kShardBytes, and a shard, which holds
// up sampling on its worker, below limits::kShardForwardPasses. With members, of all draws, what they say of a block
// stays below half of limits::kMaxShardResultBytes, or the block is one row. `num_parts`: how many sums there are of a
// chain and kind.
int64_t RowsPerBlock(const PinnedDraws& draws, size_t num_kinds, size_t num_workers, bool members = false,
                     int64_t num_parts = 1);

}  // namespace chainfleet
