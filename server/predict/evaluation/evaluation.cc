#include "server/predict/evaluation/evaluation.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "server/predict/evaluation/conformal_rows.h"
#include "server/predict/evaluation/evaluation_memory.h"
#include "server/predict/evaluation/evaluation_options.h"
#include "server/predict/evaluation/evaluation_pass.h"
#include "server/predict/evaluation/label_reader.h"
#include "server/predict/serving/draw_selection.h"
#include "server/predict/serving/fan_out.h"
#include "server/predict/serving/pinned_call.h"

namespace chainfleet {
namespace {

// Passes over each data set in turn, the stacking rows first, then over each corruption of the scored data set, then
// over chains for flatness. Everything runs on the strand except the reads of labels.
class EvaluateCall final : public PinnedCall<Evaluation> {
 public:
  using Progress = std::function<void(const EvaluationProgress&)>;

  // Without `progress` the call ends before its first row, with only the job and version.
  EvaluateCall(Executor* executor, DrawCatalog* catalog, BlobStore* blobs, ShardQueue* queue,
               const ByteBudget& row_bytes, EvaluateQuery query, Progress progress, Done done)
      : PinnedCall(executor, catalog, queue, query.draws, "evaluating job " + query.draws.job, std::move(done)),
        executor_(executor),
        blobs_(blobs),
        query_(std::move(query)),
        progress_(std::move(progress)),
        max_row_bytes_(row_bytes.max_bytes()),
        held_(row_bytes) {}

 private:
  struct Stage {
    std::function<void()> start;
    std::function<void()> end;  // after its last row
  };

  absl::Status OnPinned() override {
    CHAINFLEET_RETURN_IF_ERROR(Prepare());
    const auto num_chains = static_cast<int64_t>(draws().chains.size());
    CHAINFLEET_RETURN_IF_ERROR(CheckStacking(result_.num_stacking_rows, num_chains));
    const int64_t bytes = StackingBytes(result_.num_stacking_rows, num_chains) +
                          EvaluationBytes({.labelled = result_.num_rows,
                                           .ood = result_.num_ood_rows,
                                           .held_out = result_.num_calibration_rows,
                                           .changed = !query_.corruptions.empty(),
                                           .weighted = stacking_.has_value()},
                                          kinds_.size(), draws().plan->targets);
    CHAINFLEET_RETURN_IF_ERROR(CheckEvaluationBytes(bytes, max_row_bytes_));
    if (progress_) {
      CHAINFLEET_RETURN_IF_ERROR(HoldEvaluationBytes(bytes, &held_));
      stages_.front().start();
      return absl::OkStatus();
    }
    if (queue().WorkerIds(draws().plan->tenant).empty()) return NoServingWorker();
    Finish(std::move(result_));
    return absl::OkStatus();
  }

  absl::Status Prepare() {
    CHAINFLEET_ASSIGN_OR_RETURN(kinds_, ChooseKinds(draws(), query_.kinds));
    CHAINFLEET_RETURN_IF_ERROR(CheckOptions(query_, draws(), kinds_));
    result_.job = draws().plan->job;
    result_.version = draws().version;
    result_.point = draws().point;
    result_.draws_in_version = draws().draws_in_version;
    if (!query_.stacking_dataset.empty()) {
      CHAINFLEET_RETURN_IF_ERROR(
          Add(query_.stacking_dataset, &stacking_.emplace(), &result_.stacking_dataset, &result_.num_stacking_rows));
      stages_.back().end = [this] { result_.weights = stacking_->densities->Weights(); };
    }
    CHAINFLEET_RETURN_IF_ERROR(Add(query_.dataset, &scored_, &result_.dataset, &result_.num_rows));
    if (!query_.ood_dataset.empty()) {
      ood_.emplace().labelled = false;
      CHAINFLEET_RETURN_IF_ERROR(Add(query_.ood_dataset, &*ood_, &result_.ood_dataset, &result_.num_ood_rows));
    }
    if (!query_.calibration_dataset.empty()) {
      CHAINFLEET_RETURN_IF_ERROR(Add(query_.calibration_dataset, &held_out_.emplace(), &result_.calibration_dataset,
                                     &result_.num_calibration_rows));
    }
    for (const Corruption& corruption : CorruptionsOf(query_)) AddCorrupted(corruption);
    if (query_.flatness) AddFlatness();
    return absl::OkStatus();
  }

  absl::Status Add(const std::string& dataset, EvaluationPass* pass, std::string* name, int64_t* num_rows) {
    CHAINFLEET_ASSIGN_OR_RETURN(pass->dataset, catalog().GetDataset(query_.draws.job, dataset));
    CHAINFLEET_RETURN_IF_ERROR(CheckDataset(pass->dataset, draws()));
    *name = dataset;
    *num_rows = pass->dataset.num_rows;
    rows_total_ += pass->dataset.num_rows;
    stages_.push_back({[this, pass] { Start(pass); }, [] {}});
    return absl::OkStatus();
  }

  // Passes over the scored data set again, with the labels in memory; scored at once, because there may be many.
  void AddCorrupted(const Corruption& corruption) {
    rows_total_ += scored_.dataset.num_rows;
    stages_.push_back({[this, corruption] {
                         corrupted_.emplace(EvaluationPass{.dataset = scored_.dataset, .corruption = corruption});
                         Run(&*corrupted_, scored_.rows->targets());
                       },
                       [this, corruption] {
                         const Scores scores = ScoreAll(*corrupted_->rows, query_.ece_bins);
                         result_.corrupted.push_back({corruption.name, corruption.severity, scores});
                       }});
  }

  // Each stage computes one chain on each worker.
  void AddFlatness() {
    const size_t width = std::max<size_t>(queue().WorkerIds(draws().plan->tenant).size(), 1);
    for (size_t first = 0; first < draws().chains.size(); first += width) {
      stages_.push_back({[this, first, width] { RunFlatness(first, width); }, [] {}});
    }
  }

  // Reads the labels or targets that the pass needs, then runs it.
  void Start(EvaluationPass* pass) {
    if (!pass->labelled) return Run(pass, std::nullopt);
    executor_->Schedule([this, pass, self = shared_from_this()] {
      absl::StatusOr<TargetValues> read = ReadTargets(*blobs_, pass->dataset, draws().plan->targets);
      strand().Schedule([this, pass, self, targets = std::move(read)]() mutable {
        if (finished()) return;
        if (!targets.ok()) return Finish(targets.status());
        Run(pass, *std::move(targets));
      });
    });
  }

  void Run(EvaluationPass* pass, std::optional<TargetValues> targets) {
    const Targets& learned = draws().plan->targets;
    if (stacking_ && pass == &*stacking_) {
      pass->densities.emplace(draws().chains, *std::move(targets));
    } else {
      pass->rows.emplace(kinds_, pass->dataset.num_rows, learned, std::move(targets),
                         pass->corruption ? std::vector<ChainWeight>() : result_.weights);
    }
    if (pass == &scored_ && query_.curve_points > 0) {
      std::vector<int64_t> steps;
      for (const ChainDraws& chain : draws().chains) steps.push_back(NumDraws(chain));
      pass->curve.emplace(std::move(steps), query_.curve_points, pass->rows->num_classes(), pass->rows->labels(),
                          query_.ece_bins);
    }
    FanOut::Plan plan;
    plan.trace_id = query_.trace_id;
    plan.kinds = kinds_;
    plan.num_rows = pass->dataset.num_rows;
    plan.set_rows = [pass, &learned](const RowBlock& rows, ShardRequest* request) {
      pass->SetRows(rows, learned, request);
    };
    plan.rows_per_block = EvaluationRowsPerBlock(draws(), kinds_, pass->curve.has_value());
    FanOutRows(std::move(plan),
               {.block = [this, pass](const RowBlock& rows,
                                      std::vector<PartialPrediction> partials) { OnBlock(pass, rows, partials); },
                .end =
                    [this, pass](const absl::Status& status) {
                      if (!status.ok()) return OnEnd(status);
                      NoteDrawsUsed(*pass);
                      OnEnd(pass->CheckFinite());
                    }});
  }

  void RunFlatness(size_t first, size_t count) {
    FanOut::Plan plan;
    plan.trace_id = query_.trace_id;
    plan.draws = std::make_shared<const PinnedDraws>(NewestDraws(draws(), first, count));
    plan.kinds = kinds_;
    plan.num_rows = plan.rows_per_block = std::min(scored_.dataset.num_rows, limits::kMaxShardRows);
    plan.set_rows = [this](const RowBlock& rows, ShardRequest* request) {
      request->rows = DatasetRows{scored_.dataset, rows.first_row, rows.num_rows};
      request->flatness = FlatnessPlan();
    };
    FanOutRows(std::move(plan), {.block = [](const RowBlock&, const std::vector<PartialPrediction>&) {},
                                 .end = [this](const absl::Status& status) { OnEnd(status); },
                                 .flatness =
                                     [this](std::vector<Flatness> found) {
                                       std::ranges::move(found, std::back_inserter(result_.flatness));
                                     }});
  }

  void OnBlock(EvaluationPass* pass, const RowBlock& rows, const std::vector<PartialPrediction>& partials) {
    pass->Add(rows, partials);
    rows_done_ += rows.num_rows;
    progress_({rows_done_, rows_total_});
  }

  void NoteDrawsUsed(const EvaluationPass& pass) {
    if (!pass.rows) return;
    const int64_t used = pass.rows->draws_used();
    result_.draws_used = draws_known_ ? std::min(result_.draws_used, used) : used;
    draws_known_ = true;
  }

  void OnEnd(const absl::Status& status) {
    if (!status.ok()) return Finish(Annotate(status, "evaluating job " + draws().plan->job));
    stages_.front().end();
    stages_.pop_front();
    if (stages_.empty()) return Finish(Result());
    // The calling FanOut is replaced, so do not start the stage from within its call.
    strand().Schedule([this, self = shared_from_this()] {
      if (!finished()) stages_.front().start();
    });
  }

  absl::StatusOr<Evaluation> Result() {
    CHAINFLEET_RETURN_IF_ERROR(CheckEnough(draws(), result_.draws_used, 1));
    std::ranges::sort(result_.flatness, {}, &Flatness::chain);
    const ScoredRows& rows = *scored_.rows;
    result_.scores = ScoreTable(rows, ood_ ? &*ood_->rows : nullptr, query_.ece_bins);
    const bool classes = std::holds_alternative<Classes>(draws().plan->targets);
    if (held_out_) {
      if (classes) {
        std::ranges::move(CalibratedScores(rows, *held_out_->rows, query_.ece_bins),
                          std::back_inserter(result_.scores));
      }
      result_.conformal_thresholds = ConformalThresholdsOf(*held_out_->rows);
      result_.conformal = ScoreConformal(rows, result_.conformal_thresholds);
    }
    if (scored_.curve) result_.curve = scored_.curve->Points();
    if (classes) {
      result_.examples = ExampleRows(rows, query_.example_rows);
    }
    return std::move(result_);
  }

  Executor* const executor_;
  BlobStore* const blobs_;
  const EvaluateQuery query_;
  const Progress progress_;
  const int64_t max_row_bytes_;
  ByteShare held_;
  std::vector<DrawKind> kinds_;
  EvaluationPass scored_;
  std::optional<EvaluationPass> ood_, held_out_, stacking_;
  std::optional<EvaluationPass> corrupted_;  // the running pass
  std::deque<Stage> stages_;                 // the running stage and those after it
  Evaluation result_;
  bool draws_known_ = false;
  int64_t rows_done_ = 0, rows_total_ = 0;
};

}  // namespace

Evaluator::Evaluator(Executor* executor, DrawCatalog* catalog, BlobStore* blobs, ShardQueue* queue,
                     int64_t max_row_bytes)
    : executor_(executor), catalog_(catalog), blobs_(blobs), queue_(queue), row_bytes_(max_row_bytes) {}

void Evaluator::Check(EvaluateQuery query, absl::Duration timeout, std::function<void(absl::StatusOr<int64_t>)> done) {
  std::make_shared<EvaluateCall>(executor_, catalog_, blobs_, queue_, row_bytes_, std::move(query), nullptr,
                                 [done = std::move(done)](const absl::StatusOr<Evaluation>& checked) {
                                   if (!checked.ok()) return done(checked.status());
                                   done(checked->version);
                                 })
      ->Begin(timeout);
}

std::function<void()> Evaluator::Evaluate(EvaluateQuery query, absl::Duration timeout,
                                          std::function<void(const EvaluationProgress&)> progress,
                                          std::function<void(absl::StatusOr<Evaluation>)> done) {
  return std::make_shared<EvaluateCall>(executor_, catalog_, blobs_, queue_, row_bytes_, std::move(query),
                                        std::move(progress), std::move(done))
      ->Begin(timeout);
}

}  // namespace chainfleet
