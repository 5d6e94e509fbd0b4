#include "server/predict/serving/predict_router.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/domain/prediction_rows.h"
#include "server/predict/serving/call_bounds.h"
#include "server/predict/serving/chain_parts.h"
#include "server/predict/serving/draw_selection.h"
#include "server/predict/serving/fan_out.h"
#include "server/predict/serving/pinned_call.h"
#include "server/predict/serving/wave_pace.h"
#include "server/predict/sums/aggregator.h"
#include "server/predict/sums/batch_means.h"
#include "server/predict/sums/member_sums.h"
#include "server/predict/sums/mixture_quantiles.h"

namespace chainfleet {
namespace {

bool NeedsMembers(const PredictQuery& query) { return query.members || !query.quantiles.empty(); }

// Returns the bytes that a call keeps until it ends: outputs of single draws, and sums. `num_parts`: sums per chain and
// kind. INVALID_ARGUMENT: errors of call_bounds.h.
absl::StatusOr<int64_t> KeptBytes(const PredictQuery& query, const PinnedDraws& draws, size_t num_kinds,
                                  int64_t num_rows, int64_t num_parts) {
  if (query.gradients) CHAINFLEET_RETURN_IF_ERROR(CheckGradientBytes(*draws.plan, num_rows));
  int64_t bytes = 0;
  if (NeedsMembers(query)) {
    CHAINFLEET_ASSIGN_OR_RETURN(bytes, CheckMemberBytes(draws, num_kinds, num_rows, query.members, query.gradients));
  }
  if (!query.anytime && !query.gradients) return bytes;
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t sums,
                              CheckSumBytes(draws, num_kinds, num_rows, num_parts, query.gradients));
  return bytes + sums;
}

absl::Status TooManyKept(int64_t bytes) {
  const std::string message =
      absl::StrCat("running predictions hold too many bytes of single-draw outputs and sums: this one needs ",
                   bytes / limits::kMiB, " MiB more; retry with backoff, or ask for fewer rows");
  return BoundReached("prediction_kept_bytes", message, "QUEUE_FULL");
}

// A plain call is one wave over all its draws. An anytime call is several waves over ever older draws.
class PredictCall final : public PinnedCall<Prediction> {
 public:
  PredictCall(const Clock* clock, Executor* executor, DrawCatalog* catalog, ShardQueue* queue,
              PredictObserver* observer, const ByteBudget& kept_bytes, PredictQuery query,
              std::shared_ptr<const InputTensor> inputs, absl::Duration timeout, Done done)
      : PinnedCall(executor, catalog, queue, query.draws,
                   absl::StrCat("job ", query.draws.job, ": its draws were still being looked up"), std::move(done)),
        clock_(clock),
        observer_(observer),
        began_(clock->Monotonic()),
        num_workers_(queue->WorkerIds(query.tenant).size()),
        query_(std::move(query)),
        inputs_(std::move(inputs)),
        held_(kept_bytes),
        end_(began_ + timeout) {}

 private:
  absl::Status OnPinned() override {
    pinned_ = clock_->Monotonic();
    CHAINFLEET_ASSIGN_OR_RETURN(kinds_, ChooseKinds(draws(), query_.kinds));
    CHAINFLEET_RETURN_IF_ERROR(CheckShape(*inputs_, *draws().plan));
    if (!query_.rows_are_checked) CHAINFLEET_RETURN_IF_ERROR(CheckRows(*inputs_));
    CHAINFLEET_RETURN_IF_ERROR(CheckEnough(draws(), NumDraws(draws()), query_.min_draws));
    CHAINFLEET_RETURN_IF_ERROR(CheckShares(draws(), query_.draws.shares));
    CHAINFLEET_RETURN_IF_ERROR(CheckQuantiles(query_.quantiles, *draws().plan));
    const bool one_chain = query_.with_errors && draws().chains.size() == 1;
    const int64_t num_draws = NumDraws(draws());
    if (one_chain && num_draws >= kMinBlocks) num_parts_ = NumParts(RunsOf(num_draws));
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t bytes,
                                KeptBytes(query_, draws(), kinds_.size(), num_rows(), num_parts_ + 1));
    if (bytes > 0) CHAINFLEET_RETURN_IF_ERROR(Hold(bytes));
    if (!query_.anytime) {
      if (num_parts_ > 0) runs_ = RunsOf(num_draws);
      BeginWave(num_parts_ > 0 ? std::make_shared<PinnedDraws>(draws()) : nullptr);
      return absl::OkStatus();
    }
    int64_t longest = 0;
    for (const ChainDraws& chain : draws().chains) longest = std::max(longest, NumDraws(chain));
    pace_.emplace(longest);
    BeginNextWave();
    return absl::OkStatus();
  }

  // Reserves memory that the call keeps until it ends.
  absl::Status Hold(int64_t bytes) { return held_.Add(bytes) ? absl::OkStatus() : TooManyKept(bytes); }

  int64_t num_rows() const { return inputs_->shape.front(); }
  bool first_wave() const { return !pace_ || pace_->done() == 0; }

  void BeginNextWave() {
    wave_began_ = clock_->Monotonic();
    // Below min_draws there is no answer to protect: the deadline itself ends the call.
    enough_ = !first_wave() && NumDraws(DrawsOfWave(draws().chains, 0, pace_->done())) >= query_.min_draws;
    wave_size_ = pace_->Next(enough_ ? end_ - wave_began_ : absl::InfiniteDuration());
    if (wave_size_ == 0) return Answer(absl::OkStatus());
    auto some = std::make_shared<PinnedDraws>(draws());
    some->chains = DrawsOfWave(draws().chains, pace_->done(), wave_size_);
    if (num_parts_ > 0) runs_ = {wave_size_};
    BeginWave(std::move(some));
  }

  // Runs a wave over `some` draws, or all (null). min_draws permits missing draws only in the first wave: a later wave
  // counts completely or not at all.
  void BeginWave(std::shared_ptr<PinnedDraws> some) {
    if (!runs_.empty()) some->chains = CutIntoParts(some->chains.front(), runs_);
    FanOut::Plan plan;
    plan.draws = std::move(some);
    plan.kinds = kinds_;
    plan.num_rows = num_rows();
    plan.set_rows = [this](const RowBlock& rows, ShardRequest* request) { request->inputs = Slice(rows); };
    plan.needs_all = query_.anytime ? !first_wave() : query_.min_draws == 0;
    plan.members = NeedsMembers(query_);
    plan.gradients = query_.gradients;
    plan.trace_id = query_.trace_id;
    plan.priority = query_.priority;
    // A later wave is planned to use much of the time that is left, and is only dropped if it does not end.
    plan.deadline = enough_ ? absl::InfiniteDuration() : std::min(end_, began_ + query_.hoped_within);
    // Use the same blocks in every wave, because their sums are added.
    plan.rows_per_block = RowsPerBlock(draws(), kinds_.size(), num_workers_, plan.members,
                                       std::max<int64_t>(num_parts_, 1), plan.gradients);
    FanOutRows(std::move(plan), {[this](const RowBlock& rows, std::vector<PartialPrediction> partials) {
                                   OnBlock(rows, std::move(partials));
                                 },
                                 [this](const absl::Status& status) { OnEnd(status); }});
  }

  std::shared_ptr<const InputTensor> Slice(const RowBlock& rows) const {
    if (rows.num_rows == num_rows()) return inputs_;
    const size_t row_bytes = inputs_->bytes.size() / static_cast<size_t>(num_rows());
    auto slice = std::make_shared<InputTensor>();
    slice->type = inputs_->type;
    slice->shape = inputs_->shape;
    slice->shape.front() = rows.num_rows;
    slice->bytes = inputs_->bytes.substr(static_cast<size_t>(rows.first_row) * row_bytes,
                                         static_cast<size_t>(rows.num_rows) * row_bytes);
    return slice;
  }

  // Sums of one block of rows.
  struct BlockSums {
    std::vector<PartialPrediction> whole;  // by chain and kind
    std::vector<PartialPrediction> parts;  // parts of the only chain, newest first, if its errors are requested
  };

  void OnBlock(const RowBlock& rows, std::vector<PartialPrediction> partials) {
    const absl::Duration before = clock_->Monotonic();
    BlockSums sums;
    if (runs_.empty()) {
      sums.whole = std::move(partials);
    } else {
      sums.whole = JoinParts(partials, runs_);
      sums.parts = std::move(partials);
      for (PartialPrediction& part : sums.parts) part.members.reset();
    }
    reduced_ += clock_->Monotonic() - before;
    if (query_.anytime) {
      wave_[rows.first_row] = std::move(sums);
    } else {
      blocks_[rows.first_row] = AverageBlock(std::move(sums));
    }
  }

  Prediction AverageBlock(BlockSums sums) {
    const absl::Duration before = clock_->Monotonic();
    if (!query_.draws.shares.empty()) {
      // A worker may have found a chain's draws damaged, and min_draws permits lost ones.
      shares_.Update(CheckShares(draws().plan->job, sums.whole, query_.draws.shares));
      sums.whole = Weighed(std::move(sums.whole), query_.draws.shares);
    }
    const std::vector<const PartialPrediction*> pointers = PointersTo(sums.whole);
    Prediction block = Average(pointers, query_.with_errors);
    if (!sums.parts.empty()) block.errors = BatchMeansErrors(sums.parts);
    if (query_.members) block.members = MembersOf(pointers);
    if (!query_.quantiles.empty()) block.quantiles = MixtureQuantiles(pointers, query_.quantiles);
    if (query_.with_errors && !query_.quantiles.empty()) {
      block.quantile_errors = MixtureQuantileErrors(pointers, sums.parts, query_.quantiles, block.quantiles);
    }
    reduced_ += clock_->Monotonic() - before;
    return block;
  }

  void OnEnd(const absl::Status& status) {
    if (!query_.anytime) return Answer(status);
    const bool adds = status.ok() || first_wave();
    for (auto& [first_row, wave] : std::exchange(wave_, {})) {
      if (!adds) break;
      BlockSums& sums = sums_[first_row];
      AddOlder(std::move(wave.whole), &sums.whole);
      std::ranges::move(wave.parts, std::back_inserter(sums.parts));
    }
    if (!status.ok()) return Answer(status);
    pace_->Took(wave_size_, clock_->Monotonic() - wave_began_);
    // The next fan-out replaces this one, so do not start it from within its event.
    strand().Schedule([self = std::static_pointer_cast<PredictCall>(shared_from_this())] {
      if (!self->finished()) self->BeginNextWave();
    });
  }

  // Between two waves the draws so far give an answer.
  void OnStopped(const absl::Status& status) override {
    if (sums_.empty()) return PinnedCall::OnStopped(status);
    Answer(status);
  }

  void Answer(const absl::Status& status) {
    for (auto& [first_row, sums] : std::exchange(sums_, {})) blocks_[first_row] = AverageBlock(std::move(sums));
    Prediction whole;
    for (auto& [first_row, block] : std::exchange(blocks_, {})) AppendRows(std::move(block), &whole);
    const int64_t used = whole.num_rows == num_rows() ? whole.draws_used : 0;
    const int64_t needed = query_.anytime ? std::max<int64_t>(query_.min_draws, 1) : query_.min_draws;
    const bool suffices = needed > 0 && used >= needed && !absl::IsCancelled(status);
    if (!status.ok() && !suffices) {
      const std::string wanted = query_.min_draws > 0 ? absl::StrCat(", min_draws is ", query_.min_draws) : "";
      return Finish(Annotate(status, absl::StrCat("job ", draws().plan->job, ": ", used, " of ", NumDraws(draws()),
                                                  " draws were averaged", wanted)));
    }
    if (absl::Status enough = CheckEnough(draws(), used, query_.min_draws); !enough.ok())
      return Finish(std::move(enough));
    if (!shares_.ok()) return Finish(shares_);
    whole.job = draws().plan->job;
    whole.version = draws().version;
    whole.point = draws().point;
    whole.draws_in_version = draws().draws_in_version;
    observer_->OnAverage({.lookup = pinned_ - began_,
                          .workers = clock_->Monotonic() - pinned_ - reduced_,
                          .reduce = reduced_,
                          .draws = used});
    Finish(std::move(whole));
  }

  const Clock* const clock_;
  PredictObserver* const observer_;
  const absl::Duration began_;       // monotonic
  absl::Duration pinned_, reduced_;  // monotonic; time spent on sums
  const size_t num_workers_;
  const PredictQuery query_;
  const std::shared_ptr<const InputTensor> inputs_;
  ByteShare held_;
  const absl::Duration end_;  // monotonic
  std::vector<DrawKind> kinds_;
  std::map<int64_t, Prediction> blocks_;  // by first row
  absl::Status shares_;                   // whether all blocks have draws of each chain with a weight
  // For the errors of a single chain, which is summed in parts: the number of parts, and the cuts of a wave.
  int64_t num_parts_ = 0;
  std::vector<int64_t> runs_;
  // For an anytime call: sums of finished waves, and of the running wave.
  std::optional<WavePace> pace_;
  std::map<int64_t, BlockSums> sums_, wave_;  // by first row
  int64_t wave_size_ = 0;
  bool enough_ = false;  // there are enough draws for an answer
  absl::Duration wave_began_;
};

}  // namespace

PredictRouter::PredictRouter(const Clock* clock, Executor* executor, DrawCatalog* catalog, ShardQueue* queue,
                             PredictObserver* observer, int64_t max_kept_bytes)
    : observer_(ObserverOrNobody(observer)),
      clock_(clock),
      executor_(executor),
      catalog_(catalog),
      queue_(queue),
      kept_bytes_(max_kept_bytes) {}

absl::Duration PredictRouter::EarlyBy(absl::Duration timeout) {
  return std::clamp(timeout / 10, absl::ZeroDuration(), absl::Milliseconds(100));
}

std::function<void()> PredictRouter::Predict(PredictQuery query, std::shared_ptr<const InputTensor> inputs,
                                             absl::Duration timeout,
                                             std::function<void(absl::StatusOr<Prediction>)> done) {
  if (query.anytime || query.min_draws > 0) timeout -= EarlyBy(timeout);
  return std::make_shared<PredictCall>(clock_, executor_, catalog_, queue_, observer_, kept_bytes_, std::move(query),
                                       std::move(inputs), timeout, std::move(done))
      ->Begin(timeout);
}

}  // namespace chainfleet
