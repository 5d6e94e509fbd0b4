#include "server/predict/evaluation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/predict/draw_selection.h"
#include "server/predict/fan_out.h"
#include "server/predict/label_reader.h"
#include "server/predict/scored_rows.h"

namespace chainfleet {
namespace {

// Pin, read labels, then one pass over each data set. Everything runs on the strand but the reading.
class EvaluateCall : public std::enable_shared_from_this<EvaluateCall> {
 public:
  EvaluateCall(Executor* executor, DrawCatalog* catalog, BlobStore* blobs, ShardQueue* queue, EvaluateQuery query,
               std::function<void(const EvaluationProgress&)> progress,
               std::function<void(absl::StatusOr<Evaluation>)> done)
      : executor_(executor),
        strand_(executor),
        catalog_(catalog),
        blobs_(blobs),
        queue_(queue),
        query_(std::move(query)),
        progress_(std::move(progress)),
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
  // One data set: what it is, and its rows as they are scored.
  struct Pass {
    Dataset dataset;
    std::optional<ScoredRows> rows;
  };

  void Stop(const absl::Status& status) {
    if (fan_out_) fan_out_->Stop(status);
    Finish(Annotate(status, "evaluating job " + query_.draws.job));  // between two passes, or before them
  }

  void OnPinned(absl::StatusOr<PinnedDraws> draws) {
    if (done_ == nullptr) return;
    const absl::Status status = draws.ok() ? Prepare(*std::move(draws)) : draws.status();
    if (!status.ok()) return Finish(status);
    executor_->Schedule([self = shared_from_this()] {
      auto labels = ReadLabels(*self->blobs_, self->scored_.dataset, self->draws_->plan->num_classes);
      self->strand_.Schedule([self, labels = std::move(labels)]() mutable { self->OnLabels(std::move(labels)); });
    });
  }

  absl::Status Prepare(PinnedDraws pinned) {
    draws_ = std::make_shared<const PinnedDraws>(std::move(pinned));
    CHAINFLEET_ASSIGN_OR_RETURN(kinds_, ChooseKinds(*draws_, query_.kinds));
    if (query_.ece_bins < 1) {
      return InvalidFields({{"ece_bins", absl::StrCat("is ", query_.ece_bins, ": must be at least 1")}});
    }
    CHAINFLEET_ASSIGN_OR_RETURN(scored_.dataset, catalog_->GetDataset(query_.dataset));
    CHAINFLEET_RETURN_IF_ERROR(CheckDataset(scored_.dataset, *draws_->plan));
    if (query_.ood_dataset.empty()) return absl::OkStatus();
    CHAINFLEET_ASSIGN_OR_RETURN(ood_.emplace().dataset, catalog_->GetDataset(query_.ood_dataset));
    return CheckDataset(ood_->dataset, *draws_->plan);
  }

  void OnLabels(absl::StatusOr<std::vector<int32_t>> labels) {
    if (done_ == nullptr) return;
    if (!labels.ok()) return Finish(labels.status());
    Run(&scored_, *std::move(labels));
  }

  void Run(Pass* pass, std::vector<int32_t> labels) {
    const bool per_draw_scores = !labels.empty();
    pass->rows.emplace(kinds_, pass->dataset.num_rows, draws_->plan->num_classes, std::move(labels));
    FanOut::Plan plan;
    plan.draws = draws_;
    plan.kinds = kinds_;
    plan.num_rows = pass->dataset.num_rows;
    plan.set_rows = [pass, per_draw_scores](const RowBlock& rows, ShardRequest* request) {
      request->rows = DatasetRows{pass->dataset, rows.first_row, rows.num_rows};
      request->per_draw_scores = per_draw_scores;
    };
    fan_out_.emplace(weak_from_this(), &strand_, queue_, catalog_, std::move(plan),
                     FanOut::Events{[this, pass](const RowBlock& rows, std::vector<PartialPrediction> partials) {
                                      OnBlock(pass, rows, partials);
                                    },
                                    [this, pass](const absl::Status& status) { OnEnd(pass, status); }});
    fan_out_->Advance();
  }

  void OnBlock(Pass* pass, const RowBlock& rows, const std::vector<PartialPrediction>& partials) {
    pass->rows->Add(rows, partials);
    rows_done_ += rows.num_rows;
    progress_({rows_done_, scored_.dataset.num_rows + (ood_ ? ood_->dataset.num_rows : 0)});
  }

  void OnEnd(Pass* pass, const absl::Status& status) {
    if (!status.ok()) return Finish(Annotate(status, "evaluating job " + draws_->plan->job));
    if (pass == &scored_ && ood_) {
      // The FanOut that is calling is replaced, so not from within its call.
      strand_.Schedule([self = shared_from_this()] {
        if (self->done_ != nullptr) self->Run(&*self->ood_, {});
      });
      return;
    }
    Finish(Result());
  }

  absl::StatusOr<Evaluation> Result() const {
    Evaluation result;
    result.draws_used = std::min(scored_.rows->draws_used(), ood_ ? ood_->rows->draws_used() : INT64_MAX);
    CHAINFLEET_RETURN_IF_ERROR(CheckEnough(*draws_, result.draws_used, 1));
    result.job = draws_->plan->job;
    result.version = draws_->version;
    result.draws_in_version = draws_->draws_in_version;
    result.dataset = scored_.dataset.name;
    result.num_rows = scored_.dataset.num_rows;
    if (ood_) {
      result.ood_dataset = ood_->dataset.name;
      result.num_ood_rows = ood_->dataset.num_rows;
    }
    result.scores = ScoreTable(*scored_.rows, ood_ ? &*ood_->rows : nullptr, query_.ece_bins);
    return result;
  }

  void Finish(absl::StatusOr<Evaluation> result) {
    if (const auto done = std::exchange(done_, nullptr)) done(std::move(result));
  }

  Executor* const executor_;
  Strand strand_;
  DrawCatalog* const catalog_;
  BlobStore* const blobs_;
  ShardQueue* const queue_;
  const EvaluateQuery query_;
  const std::function<void(const EvaluationProgress&)> progress_;
  std::function<void(absl::StatusOr<Evaluation>)> done_;
  std::shared_ptr<const PinnedDraws> draws_;
  std::vector<DrawKind> kinds_;
  Pass scored_;
  std::optional<Pass> ood_;
  std::optional<FanOut> fan_out_;
  int64_t rows_done_ = 0;
};

}  // namespace

Evaluator::Evaluator(Executor* executor, DrawCatalog* catalog, BlobStore* blobs, ShardQueue* queue)
    : executor_(executor), catalog_(catalog), blobs_(blobs), queue_(queue) {}

std::function<void()> Evaluator::Evaluate(EvaluateQuery query, absl::Duration timeout,
                                          std::function<void(const EvaluationProgress&)> progress,
                                          std::function<void(absl::StatusOr<Evaluation>)> done) {
  const auto call = std::make_shared<EvaluateCall>(executor_, catalog_, blobs_, queue_, std::move(query),
                                                   std::move(progress), std::move(done));
  call->Begin(timeout);
  return [weak = std::weak_ptr<EvaluateCall>(call)] {
    if (const auto self = weak.lock()) self->ScheduleStop(absl::CancelledError("the call was cancelled"));
  };
}

}  // namespace chainfleet
