#include "server/predict/evaluation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/predict/draw_selection.h"
#include "server/predict/fan_out.h"
#include "server/predict/label_reader.h"
#include "server/predict/pinned_call.h"
#include "server/predict/scored_numbers.h"
#include "server/predict/scored_rows.h"

namespace chainfleet {
namespace {

// Reads the labels, then passes over each data set. Everything runs on the strand but the reading.
class EvaluateCall final : public PinnedCall<Evaluation> {
 public:
  EvaluateCall(Executor* executor, DrawCatalog* catalog, BlobStore* blobs, ShardQueue* queue, EvaluateQuery query,
               std::function<void(const EvaluationProgress&)> progress, Done done)
      : PinnedCall(executor, catalog, queue, query.draws, "evaluating job " + query.draws.job, std::move(done)),
        executor_(executor),
        blobs_(blobs),
        query_(std::move(query)),
        progress_(std::move(progress)) {}

 private:
  // One data set: what it is, and its rows as they are scored.
  struct Pass {
    Dataset dataset;
    std::optional<ScoredRows> rows;
    std::optional<ScoredNumbers> numbers;  // instead, of float32 targets
    int64_t draws_used() const { return rows ? rows->draws_used() : numbers->draws_used(); }
  };

  absl::Status OnPinned() override {
    CHAINFLEET_RETURN_IF_ERROR(Prepare());
    executor_->Schedule([this, self = shared_from_this()] {
      const int64_t num_classes = draws().plan->num_classes;
      if (num_classes == 0) return Deliver(ReadNumbers(*blobs_, scored_.dataset));
      Deliver(ReadLabels(*blobs_, scored_.dataset, num_classes));
    });
    return absl::OkStatus();
  }

  template <typename T>
  void Deliver(absl::StatusOr<std::vector<T>> targets) {
    strand().Schedule([this, self = shared_from_this(), targets = std::move(targets)]() mutable {
      if (finished()) return;
      if (!targets.ok()) return Finish(targets.status());
      Run(&scored_, *std::move(targets));
    });
  }

  absl::Status Prepare() {
    CHAINFLEET_ASSIGN_OR_RETURN(kinds_, ChooseKinds(draws(), query_.kinds));
    if (query_.ece_bins < 1) {
      return InvalidFields({{"ece_bins", absl::StrCat("is ", query_.ece_bins, ": must be at least 1")}});
    }
    CHAINFLEET_ASSIGN_OR_RETURN(scored_.dataset, catalog().GetDataset(query_.dataset));
    CHAINFLEET_RETURN_IF_ERROR(CheckDataset(scored_.dataset, *draws().plan));
    if (query_.ood_dataset.empty()) return absl::OkStatus();
    if (draws().plan->num_classes == 0) {
      return InvalidFields(
          {{"ood_dataset", "inputs are told apart by the entropy of classes: the job learns numbers"}});
    }
    CHAINFLEET_ASSIGN_OR_RETURN(ood_.emplace().dataset, catalog().GetDataset(query_.ood_dataset));
    return CheckDataset(ood_->dataset, *draws().plan);
  }

  void Run(Pass* pass, std::vector<int32_t> labels) {
    const bool per_draw_scores = !labels.empty();
    pass->rows.emplace(kinds_, pass->dataset.num_rows, draws().plan->num_classes, std::move(labels));
    Run(pass, per_draw_scores);
  }

  void Run(Pass* pass, std::vector<float> targets) {
    pass->numbers.emplace(kinds_, std::move(targets));
    Run(pass, /*per_draw_scores=*/true);
  }

  void Run(Pass* pass, bool per_draw_scores) {
    FanOut::Plan plan;
    plan.kinds = kinds_;
    plan.num_rows = pass->dataset.num_rows;
    plan.set_rows = [pass, per_draw_scores](const RowBlock& rows, ShardRequest* request) {
      request->rows = DatasetRows{pass->dataset, rows.first_row, rows.num_rows};
      request->per_draw_scores = per_draw_scores;
    };
    FanOutRows(std::move(plan), {[this, pass](const RowBlock& rows, std::vector<PartialPrediction> partials) {
                                   OnBlock(pass, rows, partials);
                                 },
                                 [this, pass](const absl::Status& status) { OnEnd(pass, status); }});
  }

  void OnBlock(Pass* pass, const RowBlock& rows, const std::vector<PartialPrediction>& partials) {
    if (pass->rows) pass->rows->Add(rows, partials);
    if (pass->numbers) pass->numbers->Add(rows, partials);
    rows_done_ += rows.num_rows;
    progress_({rows_done_, scored_.dataset.num_rows + (ood_ ? ood_->dataset.num_rows : 0)});
  }

  void OnEnd(Pass* pass, const absl::Status& status) {
    if (!status.ok()) return Finish(Annotate(status, "evaluating job " + draws().plan->job));
    if (pass == &scored_ && ood_) {
      // The FanOut that is calling is replaced, so not from within its call.
      strand().Schedule([this, self = shared_from_this()] {
        if (!finished()) Run(&*ood_, std::vector<int32_t>());
      });
      return;
    }
    Finish(Result());
  }

  absl::StatusOr<Evaluation> Result() const {
    Evaluation result;
    result.draws_used = std::min(scored_.draws_used(), ood_ ? ood_->draws_used() : INT64_MAX);
    CHAINFLEET_RETURN_IF_ERROR(CheckEnough(draws(), result.draws_used, 1));
    result.job = draws().plan->job;
    result.version = draws().version;
    result.draws_in_version = draws().draws_in_version;
    result.dataset = scored_.dataset.name;
    result.num_rows = scored_.dataset.num_rows;
    if (ood_) {
      result.ood_dataset = ood_->dataset.name;
      result.num_ood_rows = ood_->dataset.num_rows;
    }
    result.scores = scored_.numbers ? scored_.numbers->Table()
                                    : ScoreTable(*scored_.rows, ood_ ? &*ood_->rows : nullptr, query_.ece_bins);
    return result;
  }

  Executor* const executor_;
  BlobStore* const blobs_;
  const EvaluateQuery query_;
  const std::function<void(const EvaluationProgress&)> progress_;
  std::vector<DrawKind> kinds_;
  Pass scored_;
  std::optional<Pass> ood_;
  int64_t rows_done_ = 0;
};

}  // namespace

Evaluator::Evaluator(Executor* executor, DrawCatalog* catalog, BlobStore* blobs, ShardQueue* queue)
    : executor_(executor), catalog_(catalog), blobs_(blobs), queue_(queue) {}

std::function<void()> Evaluator::Evaluate(EvaluateQuery query, absl::Duration timeout,
                                          std::function<void(const EvaluationProgress&)> progress,
                                          std::function<void(absl::StatusOr<Evaluation>)> done) {
  return std::make_shared<EvaluateCall>(executor_, catalog_, blobs_, queue_, std::move(query), std::move(progress),
                                        std::move(done))
      ->Begin(timeout);
}

}  // namespace chainfleet
