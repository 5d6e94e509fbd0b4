#include "server/predict/serving/fan_out.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/limits.h"
#include "core/base/saturating.h"
#include "server/predict/serving/draw_selection.h"
#include "server/predict/serving/placement.h"

namespace chainfleet {

int64_t RowsPerBlock(const PinnedDraws& draws, size_t num_kinds, size_t num_workers, bool members, int64_t num_parts,
                     bool gradients) {
  const int64_t num_networks = SaturatingMultiply(NumDraws(draws), static_cast<int64_t>(num_kinds));
  const int64_t passes = gradients ? NumClasses(draws.plan->targets) + 3 : 1;
  const int64_t passes_per_row =
      std::max<int64_t>(SaturatingMultiply(num_networks, passes) / std::max<int64_t>(num_workers, 1), 1);
  int64_t input_bytes = sizeof(float);
  for (const int64_t extent : draws.plan->input_shape) input_bytes = SaturatingMultiply(input_bytes, extent);
  const int64_t sum_bytes = SaturatingProduct(num_parts, static_cast<int64_t>(sizeof(double)),
                                              std::max<int64_t>(3 * NumClasses(draws.plan->targets) + 1, 5));
  const int64_t rows =
      std::min(limits::kShardForwardPasses / passes_per_row, limits::kShardBytes / std::max(input_bytes, sum_bytes));
  const int64_t clamped = std::clamp(rows, limits::kMinShardRows, limits::kMaxShardRows);
  if (!members) return clamped;
  const int64_t member_bytes = SaturatingProduct(num_networks, std::max<int64_t>(NumClasses(draws.plan->targets), 2),
                                                 static_cast<int64_t>(sizeof(float)));
  const int64_t fitting = limits::kMaxShardResultBytes / 2 / std::max<int64_t>(member_bytes, 1);
  return std::clamp<int64_t>(fitting, 1, clamped);
}

FanOut::FanOut(std::weak_ptr<void> owner, Strand* strand, ShardQueue* queue, DrawCatalog* catalog, Plan plan,
               Events events)
    : owner_(std::move(owner)),
      strand_(strand),
      queue_(queue),
      catalog_(catalog),
      plan_(std::move(plan)),
      events_(std::move(events)),
      rows_per_block_(plan_.rows_per_block > 0
                          ? plan_.rows_per_block
                          : RowsPerBlock(*plan_.draws, plan_.kinds.size(),
                                         queue->WorkerIds(plan_.draws->plan->tenant).size(), plan_.members)) {}

void FanOut::Advance() {
  while (next_row_ < plan_.num_rows && open_.size() < limits::kRowBlocksInFlight) BeginBlock();
  if (open_.empty()) End();
}

void FanOut::BeginBlock() {
  const int64_t first_row = next_row_;
  Block& block = open_[first_row];
  block.rows = {first_row, std::min(rows_per_block_, plan_.num_rows - first_row)};
  next_row_ += block.rows.num_rows;
  for (ChainGroup& group : GroupChains(plan_.draws->chains, queue_->WorkerIds(plan_.draws->plan->tenant))) {
    ShardRequest request;
    request.plan = plan_.draws->plan;
    request.chains = std::move(group.chains);
    request.kinds = plan_.kinds;
    request.members = plan_.members;
    request.gradients = plan_.gradients;
    request.trace_id = plan_.trace_id;
    plan_.set_rows(block.rows, &request);
    ++block.pending;
    block.tickets.push_back(
        queue_->Submit(std::move(request), group.worker, plan_.deadline, plan_.priority,
                       [this, owner = owner_.lock(), strand = strand_, first_row](absl::StatusOr<ShardResult> result) {
                         strand->Schedule([this, owner, first_row, result = std::move(result)]() mutable {
                           OnShard(first_row, std::move(result));
                         });
                       }));
  }
}

void FanOut::OnShard(int64_t first_row, absl::StatusOr<ShardResult> result) {
  const auto it = open_.find(first_row);
  if (it == open_.end()) return;  // Stop came first
  Block& block = it->second;
  --block.pending;
  if (result.ok()) {
    const std::set<std::string> corrupt(result->corrupt_objects.begin(), result->corrupt_objects.end());
    for (const std::string& object : corrupt) catalog_->MarkCorrupt(plan_.draws->plan->job, object);
    std::ranges::move(result->partials, std::back_inserter(block.partials));
    std::ranges::move(result->flatness, std::back_inserter(block.flatness));
  } else {
    if (plan_.needs_all) return Stop(result.status());
    status_.Update(result.status());
  }
  if (block.pending > 0) return;
  Block done = std::move(block);
  open_.erase(it);
  if (events_.flatness) events_.flatness(std::move(done.flatness));
  events_.block(done.rows, std::move(done.partials));
  if (!ended_) Advance();
}

void FanOut::Stop(const absl::Status& status) {
  if (ended_) return;
  status_ = status;
  for (auto& [first_row, block] : std::exchange(open_, {})) {
    for (const uint64_t ticket : block.tickets) queue_->Cancel(ticket);
    if (!plan_.needs_all) events_.block(block.rows, std::move(block.partials));
  }
  End();
}

void FanOut::End() {
  ended_ = true;
  events_.end(status_);
}

}  // namespace chainfleet
