#include "server/predict/predict_router.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/predict/aggregator.h"
#include "server/predict/draw_selection.h"
#include "server/predict/fan_out.h"
#include "server/predict/pinned_call.h"

namespace chainfleet {
namespace {

class PredictCall final : public PinnedCall<Prediction> {
 public:
  PredictCall(Executor* executor, DrawCatalog* catalog, ShardQueue* queue, PredictQuery query,
              std::shared_ptr<const InputTensor> inputs, Done done)
      : PinnedCall(executor, catalog, queue, query.draws,
                   absl::StrCat("job ", query.draws.job, ": its draws were still being looked up"), std::move(done)),
        query_(std::move(query)),
        inputs_(std::move(inputs)) {}

 private:
  absl::Status OnPinned() override {
    FanOut::Plan plan;
    CHAINFLEET_ASSIGN_OR_RETURN(plan.kinds, ChooseKinds(draws(), query_.kinds));
    CHAINFLEET_RETURN_IF_ERROR(CheckInputs(*inputs_, *draws().plan));
    CHAINFLEET_RETURN_IF_ERROR(CheckEnough(draws(), NumDraws(draws()), query_.min_draws));
    plan.num_rows = inputs_->shape.front();
    plan.set_rows = [this](const RowBlock& rows, ShardRequest* request) { request->inputs = Slice(rows); };
    plan.needs_all = query_.min_draws == 0;
    FanOutRows(std::move(plan),
               {[this](const RowBlock& rows, std::vector<PartialPrediction> partials) { OnBlock(rows, partials); },
                [this](const absl::Status& status) { OnEnd(status); }});
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
    blocks_[rows.first_row] = Average(std::move(pointers), query_.with_errors);
  }

  void OnEnd(const absl::Status& status) {
    Prediction whole;
    for (auto& [first_row, block] : std::exchange(blocks_, {})) AppendRows(std::move(block), &whole);
    const int64_t used = whole.num_rows == inputs_->shape.front() ? whole.draws_used : 0;
    const bool suffices = query_.min_draws > 0 && used >= query_.min_draws && !absl::IsCancelled(status);
    if (!status.ok() && !suffices) {
      return Finish(Annotate(status, absl::StrCat("job ", draws().plan->job, ": ", used, " of ", NumDraws(draws()),
                                                  " draws were averaged, min_draws is ", query_.min_draws)));
    }
    if (absl::Status enough = CheckEnough(draws(), used, query_.min_draws); !enough.ok())
      return Finish(std::move(enough));
    whole.job = draws().plan->job;
    whole.version = draws().version;
    whole.point = draws().point;
    whole.draws_in_version = draws().draws_in_version;
    Finish(std::move(whole));
  }

  const PredictQuery query_;
  const std::shared_ptr<const InputTensor> inputs_;
  std::map<int64_t, Prediction> blocks_;  // by first row
};

}  // namespace

PredictRouter::PredictRouter(Executor* executor, DrawCatalog* catalog, ShardQueue* queue)
    : executor_(executor), catalog_(catalog), queue_(queue) {}

std::function<void()> PredictRouter::Predict(PredictQuery query, std::shared_ptr<const InputTensor> inputs,
                                             absl::Duration timeout,
                                             std::function<void(absl::StatusOr<Prediction>)> done) {
  return std::make_shared<PredictCall>(executor_, catalog_, queue_, std::move(query), std::move(inputs),
                                       std::move(done))
      ->Begin(timeout);
}

}  // namespace chainfleet
