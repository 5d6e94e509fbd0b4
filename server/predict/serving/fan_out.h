// Distributes one call's rows to the workers: cut into blocks, each block's chains into one shard per worker, a few
// blocks at a time.
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

// Not thread-safe: part of a call, whose strand runs every method and all callbacks.
class FanOut {
 public:
  struct Plan {
    std::shared_ptr<const PinnedDraws> draws;  // null: all pinned draws
    std::vector<DrawKind> kinds;
    int64_t num_rows = 0;
    std::function<void(const RowBlock&, ShardRequest*)> set_rows;  // sets the inputs, or rows of a data set
    bool needs_all = true;                                         // true: the first failed shard ends the call
    bool members = false;                                          // true: return the outputs of each draw, too
    bool gradients = false;                                        // true: return gradients by the inputs, too
    int64_t rows_per_block = 0;                                    // 0: RowsPerBlock decides
    std::string trace_id = {};                                     // trace of the call's shards
    PredictPriority priority = PredictPriority::kNormal;  // for the call's shards, unless they are an evaluation's
    absl::Duration deadline = absl::InfiniteDuration();   // monotonic, for ShardQueue::Submit
  };
  struct Events {
    // Called once per block, in the order in which they finish, with sums of (chain, kind) in any order. Without
    // needs_all some are missing if a shard failed or Stop came first.
    std::function<void(const RowBlock&, std::vector<PartialPrediction>)> block;
    // Called last: OK, the first shard's error, or the status given to Stop.
    std::function<void(const absl::Status&)> end;
    // Called before `block` for shards that request flatness, with that of their chains in any order. May be empty
    // otherwise.
    std::function<void(std::vector<Flatness>)> flatness = nullptr;
  };

  // Shards in flight keep the owner of this object alive. Corrupt objects are reported to `catalog`.
  FanOut(std::weak_ptr<void> owner, Strand* strand, ShardQueue* queue, DrawCatalog* catalog, Plan plan, Events events);

  // Starts blocks while there is room for them, or ends if all are done. Called once from outside, to start.
  void Advance();
  // Cancels the shards in flight and ends. No effect after the end.
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

// Rows of one block. Inputs and the sums of a chain and kind stay below limits::kShardBytes, and a shard, which delays
// sampling on its worker, below limits::kShardForwardPasses. With members, the outputs of all draws for a block stay
// below half of limits::kMaxShardResultBytes, or the block is one row. `num_parts`: sums per chain and kind.
// `gradients`: a row costs as many passes as it has predictions, and more.
int64_t RowsPerBlock(const PinnedDraws& draws, size_t num_kinds, size_t num_workers, bool members = false,
                     int64_t num_parts = 1, bool gradients = false);

}  // namespace chainfleet
