#include "server/predict/predict_router.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/predict/aggregator.h"
#include "server/predict/draw_selection.h"
#include "server/predict/fan_out.h"

namespace chainfleet {
namespace {

// Everything runs on the strand. The call lives as long as something it waits for holds it.
class PredictCall : public std::enable_shared_from_this<PredictCall> {
 public:
  PredictCall(Executor* executor, DrawCatalog* catalog, ShardQueue* queue, PredictQuery query,
              std::shared_ptr<const InputTensor> inputs, std::function<void(absl::StatusOr<Prediction>)> done)
      : strand_(executor),
        catalog_(catalog),
        queue_(queue),
        query_(std::move(query)),
        inputs_(std::move(inputs)),
        done_(std::move(done)) {}

  void Begin(absl::Duration timeout) {
    strand_.ScheduleAfter(timeout, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Stop(absl::DeadlineExceededError("the deadline passed"));
    });
    catalog_->Pin(query_.draws, [self = shared_from_this()](absl::StatusOr<PinnedDraws> draws) {
      self->strand_.Schedule([self, draws = std::move(draws)]() mutable { self->OnPinned(std::move(draws)); });
    });
  }

  void ScheduleStop(const absl::Status& status) {
    strand_.Schedule([self = shared_from_this(), status] { self->Stop(status); });
  }

 private:
  void Stop(const absl::Status& status) {
    if (fan_out_) return fan_out_->Stop(status);
    Finish(Annotate(status, "job " + query_.draws.job + ": its draws were still being looked up"));
  }

  void OnPinned(absl::StatusOr<PinnedDraws> draws) {
    if (done_ == nullptr) return;
    if (absl::Status status = draws.ok() ? StartFanOut(*std::move(draws)) : draws.status(); !status.ok()) {
      Finish(std::move(status));
    }
  }

  absl::Status StartFanOut(PinnedDraws pinned) {
    draws_ = std::make_shared<const PinnedDraws>(std::move(pinned));
    FanOut::Plan plan;
    CHAINFLEET_ASSIGN_OR_RETURN(plan.kinds, ChooseKinds(*draws_, query_.kinds));
    CHAINFLEET_RETURN_IF_ERROR(CheckInputs(*inputs_, *draws_->plan));
    CHAINFLEET_RETURN_IF_ERROR(CheckEnough(*draws_, NumDraws(*draws_), query_.min_draws));
    plan.draws = draws_;
    plan.num_rows = inputs_->shape.front();
    plan.set_rows = [this](const RowBlock& rows, ShardRequest* request) { request->inputs = Slice(rows); };
    plan.needs_all = query_.min_draws == 0;
    fan_out_.emplace(weak_from_this(), &strand_, queue_, catalog_, std::move(plan),
                     FanOut::Events{[this](const RowBlock& rows, std::vector<PartialPrediction> partials) {
                                      OnBlock(rows, partials);
                                    },
                                    [this](const absl::Status& status) { OnEnd(status); }});
    fan_out_->Advance();
    return absl::OkStatus();
  }

  std::shared_ptr<const InputTensor> Slice(const RowBlock& rows) const {
    if (rows.num_rows == inputs_->shape.front()) return inputs_;
    const size_t row_bytes = inputs_->bytes.size() / static_cast<size_t>(inputs_->shape.front());
    auto slice = std::make_shared<InputTensor>();
    slice->type = inputs_->type;
    slice->shape = inputs_->shape;
    slice->shape.front() = rows.num_rows;
    slice->bytes = inputs_->bytes.substr(static_cast<size_t>(rows.first_row) * row_bytes,
                                         static_cast<size_t>(rows.num_rows) * row_bytes);
    return slice;
  }

  void OnBlock(const RowBlock& rows, const std::vector<PartialPrediction>& partials) {
    std::vector<const PartialPrediction*> pointers;
    for (const PartialPrediction& partial : partials) pointers.push_back(&partial);
    blocks_[rows.first_row] = Average(std::move(pointers));
  }

  void OnEnd(const absl::Status& status) {
    Prediction whole;
    for (auto& [first_row, block] : std::exchange(blocks_, {})) AppendRows(std::move(block), &whole);
    const int64_t used = whole.num_rows == inputs_->shape.front() ? whole.draws_used : 0;
    const bool suffices = query_.min_draws > 0 && used >= query_.min_draws && !absl::IsCancelled(status);
    if (!status.ok() && !suffices) {
      return Finish(Annotate(status, absl::StrCat("job ", draws_->plan->job, ": ", used, " of ", NumDraws(*draws_),
                                                  " draws were averaged, min_draws is ", query_.min_draws)));
    }
    if (absl::Status enough = CheckEnough(*draws_, used, query_.min_draws); !enough.ok())
      return Finish(std::move(enough));
    whole.job = draws_->plan->job;
    whole.version = draws_->version;
    whole.draws_in_version = draws_->draws_in_version;
    Finish(std::move(whole));
  }

  void Finish(absl::StatusOr<Prediction> result) {
    if (const auto done = std::exchange(done_, nullptr)) done(std::move(result));
  }

  Strand strand_;
  DrawCatalog* const catalog_;
  ShardQueue* const queue_;
  const PredictQuery query_;
  const std::shared_ptr<const InputTensor> inputs_;
  std::function<void(absl::StatusOr<Prediction>)> done_;
  std::shared_ptr<const PinnedDraws> draws_;
  std::optional<FanOut> fan_out_;
  std::map<int64_t, Prediction> blocks_;  // by first row
};

}  // namespace

PredictRouter::PredictRouter(Executor* executor, DrawCatalog* catalog, ShardQueue* queue)
    : executor_(executor), catalog_(catalog), queue_(queue) {}

std::function<void()> PredictRouter::Predict(PredictQuery query, std::shared_ptr<const InputTensor> inputs,
                                             absl::Duration timeout,
                                             std::function<void(absl::StatusOr<Prediction>)> done) {
  const auto call =
      std::make_shared<PredictCall>(executor_, catalog_, queue_, std::move(query), std::move(inputs), std::move(done));
  call->Begin(timeout);
  return [weak = std::weak_ptr<PredictCall>(call)] {
    if (const auto self = weak.lock()) self->ScheduleStop(absl::CancelledError("the call was cancelled"));
  };
}

}  // namespace chainfleet
