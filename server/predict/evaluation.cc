#include "server/predict/evaluation.h"

#include <algorithm>
#include <deque>
#include <iterator>
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

// Passes over each data set in turn. Everything runs on the strand but the reading of labels.
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
    bool labelled = true;  // its labels or targets are wanted
    std::optional<ScoredRows> rows = {};
    std::optional<ScoredNumbers> numbers = {};  // instead, of float32 targets
    int64_t draws_used() const { return rows ? rows->draws_used() : numbers->draws_used(); }
  };

  absl::Status OnPinned() override {
    CHAINFLEET_RETURN_IF_ERROR(Prepare());
    Start();
    return absl::OkStatus();
  }

  absl::Status Prepare() {
    CHAINFLEET_ASSIGN_OR_RETURN(kinds_, ChooseKinds(draws(), query_.kinds));
    if (query_.ece_bins < 1) {
      return InvalidFields({{"ece_bins", absl::StrCat("is ", query_.ece_bins, ": must be at least 1")}});
    }
    CHAINFLEET_RETURN_IF_ERROR(Add(query_.dataset, &scored_));
    if (LearnsNumbers()) return RefuseClasses();
    if (!query_.ood_dataset.empty()) {
      CHAINFLEET_RETURN_IF_ERROR(Add(query_.ood_dataset, &ood_.emplace()));
      ood_->labelled = false;
    }
    if (query_.calibration_dataset.empty()) return absl::OkStatus();
    return Add(query_.calibration_dataset, &held_out_.emplace());
  }

  bool LearnsNumbers() const { return draws().plan->num_classes == 0; }

  // What is asked of classes alone.
  absl::Status RefuseClasses() const {
    std::vector<FieldViolation> violations;
    if (!query_.ood_dataset.empty()) {
      violations.push_back({"ood_dataset", "inputs are told apart by the entropy of classes: job " + draws().plan->job +
                                               " learns numbers"});
    }
    if (!query_.calibration_dataset.empty()) {
      violations.push_back({"calibration_dataset", "temperatures scale probabilities of classes: job " +
                                                       draws().plan->job + " learns numbers"});
    }
    return InvalidFields(violations);
  }

  absl::Status Add(const std::string& dataset, Pass* pass) {
    CHAINFLEET_ASSIGN_OR_RETURN(pass->dataset, catalog().GetDataset(dataset));
    CHAINFLEET_RETURN_IF_ERROR(CheckDataset(pass->dataset, *draws().plan));
    waiting_.push_back(pass);
    rows_total_ += pass->dataset.num_rows;
    return absl::OkStatus();
  }

  // The next pass: reads its labels or targets first, if they are wanted.
  void Start() {
    Pass* pass = waiting_.front();
    if (!pass->labelled) return Run(pass, std::vector<int32_t>());
    executor_->Schedule([this, pass, self = shared_from_this()] {
      if (LearnsNumbers()) return Deliver(pass, ReadNumbers(*blobs_, pass->dataset));
      Deliver(pass, ReadLabels(*blobs_, pass->dataset, draws().plan->num_classes));
    });
  }

  template <typename T>
  void Deliver(Pass* pass, absl::StatusOr<std::vector<T>> targets) {
    strand().Schedule([this, pass, self = shared_from_this(), targets = std::move(targets)]() mutable {
      if (finished()) return;
      if (!targets.ok()) return Finish(targets.status());
      Run(pass, *std::move(targets));
    });
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
                                 [this](const absl::Status& status) { OnEnd(status); }});
  }

  void OnBlock(Pass* pass, const RowBlock& rows, const std::vector<PartialPrediction>& partials) {
    if (pass->rows) pass->rows->Add(rows, partials);
    if (pass->numbers) pass->numbers->Add(rows, partials);
    rows_done_ += rows.num_rows;
    progress_({rows_done_, rows_total_});
  }

  void OnEnd(const absl::Status& status) {
    if (!status.ok()) return Finish(Annotate(status, "evaluating job " + draws().plan->job));
    waiting_.pop_front();
    if (waiting_.empty()) return Finish(Result());
    // The FanOut that is calling is replaced, so not from within its call.
    strand().Schedule([this, self = shared_from_this()] {
      if (!finished()) Start();
    });
  }

  absl::StatusOr<Evaluation> Result() const {
    Evaluation result;
    result.draws_used = scored_.draws_used();
    for (const auto* pass : {&ood_, &held_out_}) {
      if (*pass) result.draws_used = std::min(result.draws_used, (*pass)->draws_used());
    }
    CHAINFLEET_RETURN_IF_ERROR(CheckEnough(draws(), result.draws_used, 1));
    result.job = draws().plan->job;
    result.version = draws().version;
    result.point = draws().point;
    result.draws_in_version = draws().draws_in_version;
    result.dataset = scored_.dataset.name;
    result.num_rows = scored_.dataset.num_rows;
    if (ood_) {
      result.ood_dataset = ood_->dataset.name;
      result.num_ood_rows = ood_->dataset.num_rows;
    }
    if (scored_.numbers) {
      result.scores = scored_.numbers->Table();
      return result;
    }
    result.scores = ScoreTable(*scored_.rows, ood_ ? &*ood_->rows : nullptr, query_.ece_bins);
    if (held_out_) {
      result.calibration_dataset = held_out_->dataset.name;
      result.num_calibration_rows = held_out_->dataset.num_rows;
      std::ranges::move(CalibratedScores(*scored_.rows, *held_out_->rows, query_.ece_bins),
                        std::back_inserter(result.scores));
    }
    return result;
  }

  Executor* const executor_;
  BlobStore* const blobs_;
  const EvaluateQuery query_;
  const std::function<void(const EvaluationProgress&)> progress_;
  std::vector<DrawKind> kinds_;
  Pass scored_;
  std::optional<Pass> ood_, held_out_;
  std::deque<Pass*> waiting_;  // the one under way, and those after it
  int64_t rows_done_ = 0, rows_total_ = 0;
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
