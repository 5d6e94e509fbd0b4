#include "worker/numerics/batch/chain_batch.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/domain/step_size_schedule.h"
#include "core/domain/sweep_points.h"
#include "worker/numerics/arena/device_memory.h"
#include "worker/numerics/arena/precision_scope.h"
#include "worker/numerics/batch/checkpoint_codec.h"
#include "worker/numerics/batch/holding_time.h"
#include "worker/numerics/batch/potential_factory.h"
#include "worker/numerics/batch/simulated_data.h"
#include "worker/numerics/batch/start_point.h"
#include "worker/numerics/potentials/chain_blocks.h"
#include "worker/numerics/potentials/minibatch.h"
#include "worker/numerics/samplers/kernel.h"
#include "worker/numerics/tensors/torch_errors.h"
#include "worker/numerics/tracing/chain_reporter.h"
#include "worker/numerics/tracing/chain_tracer.h"

namespace chainfleet {
namespace {

constexpr char kWork[] = "a batch of chains";

// The settings that differ between the points of a sweep.
struct Point {
  StepSizeSchedule schedule;
  RowSettings own;
};

std::vector<Point> PointsOf(const JobSpec& spec, const StepPlan& steps, int64_t num_examples) {
  std::vector<Point> points;
  for (int32_t p = 0; p < NumPoints(spec.sweep); ++p) {
    const std::vector<SweepAxis> axes = AxesOf(spec.sweep);
    const std::vector<double> values = ValuesAt(spec.sweep, p);
    RowSettings own;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].name == "prior_precision") own.prior_precision = values[i];
      if (axes[i].name == "eta") own.eta = values[i];
      if (axes[i].name == "friction") own.friction = values[i];
      if (axes[i].name == "rho") own.rho = values[i];
    }
    points.push_back({StepSizeSchedule(SpecAt(spec, p), steps, num_examples), own});
  }
  return points;
}

// Gives row `row` the numbers of a resume point. False if they are not those of its kernel.
bool RestoreNumbers(const Kernel& kernel, int64_t row, const Checkpoint& checkpoint, std::optional<HoldingTime>* held,
                    SamplerState* state) {
  std::visit([&](const auto& k) { k.InitRow(state, row); }, kernel);
  std::vector<double>& numbers = state->numbers[row];
  const size_t fewest = numbers.size();  // some kernels gather more
  numbers = checkpoint.numbers;
  if (*held) {
    const auto of_held = numbers.end() - std::min<int64_t>(HoldingTime::kNumbers, numbers.size());
    (*held)->Restore(row, checkpoint.arenas.back(), {of_held, numbers.end()});
    numbers.erase(of_held, numbers.end());
  }
  return numbers.size() >= fewest;
}

class KernelBatch final : public ChainBatch {
 public:
  KernelBatch(std::shared_ptr<const JobPlan> plan, std::unique_ptr<Potential> potential, Kernel kernel, Device device,
              std::shared_ptr<const ModelFile> module, std::shared_ptr<std::vector<int32_t>> evaluated)
      : plan_(std::move(plan)),
        module_(plan_->spec.init.weights.empty() ? nullptr : std::move(module)),
        evaluated_(std::move(evaluated)),
        potential_(std::move(potential)),
        kernel_(std::move(kernel)),
        device_(device),
        names_(ArenaNames(kernel_)),
        steps_(PlanSteps(plan_->spec, potential_->num_examples())),
        points_(PointsOf(plan_->spec, steps_, potential_->num_examples())),
        batches_(plan_->spec.minibatches, potential_->num_examples(),
                 plan_->spec.model.has_data() ? plan_->spec.batch_size : 0),
        reporter_(&plan_->spec, &steps_, potential_.get(), &batches_, evaluated_.get()),
        tracer_(plan_->spec, plan_->dataset && std::holds_alternative<Classes>(plan_->dataset->targets),
                potential_.get()),
        draw_tensors_(layout().parameters()),
        scratch_(ThetaArena(potential_->layout(), device)) {
    for (const ParameterShape& statistic : potential_->statistics()) draw_tensors_.push_back(statistic);
    for (size_t i = 0; i < names_.size(); ++i) state_.arenas.emplace_back(potential_->layout(), device);
    if (plan_->spec.sampler.is_metropolis()) held_.emplace(potential_->layout(), device);
  }

  absl::Status AddChain(int32_t index, const std::optional<std::string>& resume_point,
                        const std::string* weights) override {
    const std::string who = ToString(ChainId{plan_->job, index});
    // A job without a sweep may have more chains than the plan says, because chains can be added to running jobs.
    if (index < 0 || PointOf(plan_->spec, index) >= NumPoints(plan_->spec.sweep))
      return absl::InvalidArgumentError("chain " + who + " does not exist");
    if (calibrates() && index >= NumChains(plan_->spec))
      return absl::InvalidArgumentError("chain " + who + " has no targets: a job of kind sbc takes no more chains");
    if (Find(index) != rows_.end()) return absl::AlreadyExistsError("chain " + who + " is in this batch already");
    Row row{.chain = index};
    CHAINFLEET_ASSIGN_OR_RETURN(row.stored, StoredDraws::Read(weights, plan_->spec, draw_tensors_, steps_.total_steps));
    StoredDraws snapshots;
    if (std::holds_alternative<Swag>(kernel_)) std::swap(snapshots, row.stored);
    row.first_report = FirstReportStep(index, layout().num_parameters(), device_, steps_.training_steps);
    std::optional<Checkpoint> checkpoint;
    if (resume_point) {
      CHAINFLEET_ASSIGN_OR_RETURN(checkpoint, DecodeCheckpoint(*resume_point));
      CHAINFLEET_RETURN_IF_ERROR(CheckFits(*checkpoint, plan_->job, index, SavedNames(), layout().num_parameters()));
      row.step = checkpoint->step;
      row.report = checkpoint->report;
    }
    const absl::Status added = CatchTorch(kWork, [&]() -> absl::Status {
      if (calibrates()) {
        const PrecisionScope precision(plan_->spec.precision, device_);
        *evaluated_ = {index};
        CHAINFLEET_ASSIGN_OR_RETURN(row.truth, tracer_.ValuesAt(DrawTruth(plan_->spec, layout(), index), device_));
      }
      state_.AddRow();
      const int64_t r = std::ssize(rows_);
      if (held_) held_->AddRow();
      if (checkpoint) {
        if (!RestoreNumbers(kernel_, r, *checkpoint, &held_, &state_)) return HoldsAnotherState(who);
        for (size_t i = 0; i < names_.size(); ++i) state_.arenas[i].WriteRow(r, checkpoint->arenas[i]);
      } else {
        CHAINFLEET_ASSIGN_OR_RETURN(
            const auto start, StartOfChain(layout(), plan_->spec.init, index, KeyOf(index), weights, module_.get()));
        StartRow(kernel_, start, snapshots, r, &state_);
      }
      rows_.push_back(std::move(row));
      return absl::OkStatus();
    });
    if (added.ok()) return added;
    // The next step must find as many rows as chains.
    state_.Truncate(std::ssize(rows_));
    if (held_) held_->Truncate(std::ssize(rows_));
    return added;
  }

  void RemoveChain(int32_t index) override {
    const auto row = Find(index);
    if (row == rows_.end()) return;
    ReadUnread();
    const int64_t r = row - rows_.begin();
    state_.RemoveRow(r);
    if (held_) held_->RemoveRow(r);
    if (row != std::prev(rows_.end())) *row = std::move(rows_.back());
    rows_.pop_back();
  }

  std::vector<int32_t> chains() const override {
    std::vector<int32_t> indices;
    for (const Row& row : rows_) indices.push_back(row.chain);
    return indices;
  }

  int64_t StepsDone(int32_t index) const override { return rows_[RowOf(index)].step; }

  absl::StatusOr<std::vector<RowReport>> Step() override {
    std::vector<ChainStep> chains;
    bool any_active = false, any_due = false;
    evaluated_->clear();
    for (const Row& row : rows_) {
      evaluated_->push_back(row.chain);
      const auto& [schedule, own] = PointOfRow(row);
      chains.push_back({KeyOf(row.chain), row.step, schedule.StepSize(row.step), schedule.Temperature(row.step),
                        row.step < steps_.total_steps, own});
      any_active |= chains.back().active;
      any_due |= chains.back().active && reporter_.IsDue(row.step, row.first_report);
    }
    if (!any_active) return std::vector<RowReport>();
    if (any_due) CHAINFLEET_RETURN_IF_ERROR(Measure(chains));
    return CatchTorch(kWork, [&]() -> absl::StatusOr<std::vector<RowReport>> {
      const PrecisionScope precision(plan_->spec.precision, device_);
      const StepInputs inputs = {potential_.get(), &batches_, &steps_, chains, &scratch_};
      scratch_.gradients = 0;
      // The fullest step measures best: it distributes the memory that belongs to no chain over the most chains.
      const bool measures = device_.is_cuda() && rows_.size() > measured_rows_;
      std::optional<WorkMemory> memory;
      if (measures) memory.emplace(device_);
      Late<StepInfo> info =
          std::visit([&](const auto& kernel) -> Late<StepInfo> { return kernel.Step(inputs, &state_); }, kernel_);
      if (measures) MeasureMemory(memory->Read());
      for (size_t r = 0; r < rows_.size(); ++r) rows_[r].step += static_cast<int64_t>(chains[r].active);
      // The host may have to wait for the previous step here, while the GPU works on this one.
      ReadUnread();
      unread_ = {std::move(info), {}};
      for (const ChainStep& chain : chains) unread_.moved.push_back(chain.active);
      if (IsDue()) ReadUnread();
      return Report(chains);
    });
  }

  Draw TakeDraw(int32_t index) const override {
    const int64_t row = RowOf(index);
    if (held_) return *rows_[row].due;
    const PrecisionScope precision(plan_->spec.precision, device_);
    Draw draw;
    draw.step = rows_[row].step;
    for (const DrawKind kind : KindsOf(plan_->spec)) {
      std::vector<float>& kept = draw.theta.emplace_back(ArenaOf(kind).ReadRow(row));
      const std::vector<float> statistics = StatisticsOf(kind, row);
      kept.insert(kept.end(), statistics.begin(), statistics.end());
    }
    rows_[row].stored.Replace(KindsOf(plan_->spec), draw_tensors_, &draw);
    return draw;
  }

  std::optional<Draw> GiveUpHeld(int32_t index) override { return held_ ? held_->Release(RowOf(index)) : std::nullopt; }

  bool IsFinite(int32_t index) override {
    ReadUnread();
    return rows_[RowOf(index)].finite;
  }

  std::string SaveResumePoint(int32_t index) const override {
    const int64_t row = RowOf(index);
    Checkpoint checkpoint{plan_->job, index, rows_[row].step, SavedNames(), {}, state_.numbers[row], rows_[row].report};
    for (const ThetaArena& arena : state_.arenas) checkpoint.arenas.push_back(arena.ReadRow(row));
    if (held_) {
      checkpoint.arenas.push_back(held_->arena().ReadRow(row));
      for (const double number : held_->Save(row)) checkpoint.numbers.push_back(number);
    }
    return EncodeCheckpoint(checkpoint);
  }

  const std::vector<ParameterShape>& parameters() const override { return draw_tensors_; }
  const std::vector<std::string>& trace_quantities() const override { return tracer_.quantities(); }

 private:
  struct Row {
    int32_t chain = 0;
    int64_t step = 0;                          // steps done
    std::optional<Draw> due;                   // the state that the last step of a Metropolis kernel left
    bool draw_due = false, trace_due = false;  // after the last step
    int64_t first_report = 0;                  // the update before which it is first measured
    std::optional<RunReport> report;
    std::optional<StepInfo> seen;  // info about its last step that was read
    bool finite = true;            // after all steps read so far
    StoredDraws stored;            // if any: the draw after step t is number t - 1, and not the state
    std::vector<double> truth;     // true values of the traced quantities; empty unless the job is of kind sbc
  };

  // The unread numbers of the last step, and the rows that the step moved.
  struct Unread {
    Late<StepInfo> info;
    std::vector<bool> moved;
  };

  void MeasureMemory(int64_t step_bytes) {
    int64_t bytes = step_bytes + scratch_.gradient.bytes() + (held_ ? held_->arena().bytes() : 0);
    for (const ThetaArena& arena : state_.arenas) bytes += arena.bytes();
    for (const ThetaArena& arena : scratch_.arenas) bytes += arena.bytes();
    measured_rows_ = rows_.size();
    chain_bytes_ = bytes / std::ssize(rows_);
  }

  // Chains with due draws share a pass over the data: this row and those after it, as long as the pass has no more
  // examples at a time than a step.
  std::vector<float> StatisticsOf(DrawKind kind, int64_t row) const {
    if (potential_->statistics().empty()) return {};
    const auto known = statistics_.find({kind, rows_[row].chain});
    if (known != statistics_.end()) return known->second;
    const int64_t rows = std::ssize(rows_), of_row = std::min(kStatisticsBatch, potential_->num_examples());
    const int64_t most = std::min(rows, row + rows * plan_->spec.batch_size / of_row);
    int64_t end = row + 1;
    while (end < most && rows_[end].draw_due) ++end;
    std::vector<std::vector<float>> made = potential_->DrawStatistics(ArenaOf(kind), row, end - row);
    for (int64_t r = row; r < end; ++r) statistics_[{kind, rows_[r].chain}] = std::move(made[r - row]);
    return statistics_[{kind, rows_[row].chain}];
  }

  // The names of the tensors in a resume point.
  std::vector<std::string> SavedNames() const {
    std::vector<std::string> names = names_;
    if (held_) names.push_back("held");
    return names;
  }

  const Layout& layout() const { return *potential_->layout(); }
  const ThetaArena& ArenaOf(DrawKind kind) const {
    const auto name = std::find(names_.begin(), names_.end(), DrawArena(kernel_, kind));
    CHAINFLEET_CHECK(name != names_.end()) << "the kernel keeps no " << ToString(kind);
    return state_.arenas[name - names_.begin()];
  }
  RngKey KeyOf(int32_t chain) const { return Fold(RngKey{plan_->spec.seed}, static_cast<uint64_t>(chain)); }
  const Point& PointOfRow(const Row& row) const { return points_[PointOf(plan_->spec, row.chain)]; }
  std::vector<Row>::iterator Find(int32_t index) { return std::ranges::find(rows_, index, &Row::chain); }
  int64_t RowOf(int32_t index) const {
    const auto row = std::find_if(rows_.begin(), rows_.end(), [index](const Row& r) { return r.chain == index; });
    CHAINFLEET_CHECK(row != rows_.end()) << "chain " << index << " is not in this batch";
    return row - rows_.begin();
  }

  std::string ChainsForLog() const {
    return absl::StrJoin(rows_, " ", [](std::string* out, const Row& row) { absl::StrAppend(out, row.chain); });
  }

  bool calibrates() const { return plan_->spec.kind == JobKind::kSbc; }

  // A measurement that finds no memory must not stop the chain.
  absl::Status Measure(const std::vector<ChainStep>& chains) {
    std::vector<MeasuredRow> measured;
    for (Row& row : rows_) measured.push_back({row.chain, row.first_report, &PointOfRow(row).schedule, &row.report});
    const absl::Status status = CatchTorch("the measurements of a run report", [&] {
      reporter_.Measure(measured, chains, state_.theta());
      return absl::OkStatus();
    });
    if (!absl::IsResourceExhausted(status)) return status;
    Log(LogLevel::kWarning, "no memory to measure gradient variance and curvature",
        {{"job", plan_->job}, {"chains", ChainsForLog()}});
    return absl::OkStatus();
  }

  void ReadUnread() {
    if (unread_.moved.empty()) return;
    const std::vector<StepInfo>& info = unread_.info.get();
    for (size_t r = 0; r < info.size(); ++r) {
      if (!unread_.moved[r]) continue;
      rows_[r].seen = info[r];
      rows_[r].finite &= rows_[r].seen->finite;
    }
    unread_ = {};
  }

  // True if the reports of the last step need its own numbers, or if these are there without a wait.
  bool IsDue() const {
    if (unread_.info.is_there() || !device_.is_cuda()) return true;
    for (size_t r = 0; r < rows_.size(); ++r) {
      const int64_t step = rows_[r].step;
      const bool ends = step == steps_.total_steps || steps_.CollectsAfter(step) || steps_.TracesAfter(step);
      if (unread_.moved[r] && (ends || !rows_[r].seen)) return true;
    }
    return false;
  }

  std::vector<RowReport> Report(const std::vector<ChainStep>& chains) {
    std::vector<RowReport> reports;
    statistics_.clear();
    for (size_t r = 0; r < rows_.size(); ++r) {
      rows_[r].draw_due = rows_[r].trace_due = false;
      if (!chains[r].active) continue;
      const StepInfo& seen = *rows_[r].seen;
      RowReport report{.chain = rows_[r].chain, .step = rows_[r].step};
      report.stats.energy = seen.energy;
      report.stats.step_size = seen.step_size.value_or(chains[r].step_size);
      report.stats.temperature = chains[r].temperature;
      report.stats.anchor_distance = seen.anchor_distance;
      if (held_) report.stats.metropolis = seen.metropolis;
      if (held_) report.accepted = seen.moved;
      report.gradients = scratch_.gradients;
      if (seen.log_evidence) {
        if (!rows_[r].report) rows_[r].report.emplace();
        rows_[r].report->log_evidence = seen.log_evidence;
      }
      report.stats.report = rows_[r].report;
      report.stats.device_bytes = chain_bytes_;
      report.finite = rows_[r].finite;
      // A state that the kernel does not keep is no draw, so its values are not of the law of the draws.
      rows_[r].trace_due = report.finite && seen.kept && steps_.TracesAfter(rows_[r].step);
      report.draw_due = report.finite && seen.kept && steps_.CollectsAfter(rows_[r].step);
      report.draw_due &= rows_[r].stored.Keeps(rows_[r].step);
      if (held_) report.draw_due = Hold(static_cast<int64_t>(r), seen.moved, report.draw_due);
      rows_[r].draw_due = report.draw_due;
      report.done = rows_[r].step == steps_.total_steps;
      reports.push_back(std::move(report));
    }
    AddTraces(&reports);
    return reports;
  }

  // The rows have moved already, so an error here only leaves values out.
  void AddTraces(std::vector<RowReport>* reports) {
    if (std::ranges::none_of(rows_, &Row::trace_due)) return;
    std::vector<StepInfo> info;
    for (const Row& row : rows_) info.push_back(row.seen.value_or(StepInfo()));
    std::vector<const ThetaArena*> kinds;
    for (const DrawKind kind : tracer_.kinds()) kinds.push_back(&ArenaOf(kind));
    auto traces = CatchTorch("the traces of a batch", [&] { return tracer_.Trace(info, kinds); });
    if (!traces.ok()) {
      Log(LogLevel::kWarning, "trace values not recorded",
          {{"job", plan_->job}, {"chains", ChainsForLog()}, {"error", traces.status().ToString()}});
      return;
    }
    for (RowReport& report : *reports) {
      const auto row = Find(report.chain);
      if (!row->trace_due) continue;
      report.trace = std::move((*traces)[row - rows_.begin()]);
      for (size_t q = 0; q < row->truth.size(); ++q) report.trace[q] -= row->truth[q];
    }
  }

  // Counts the state of a kept step; true if another state was left for it.
  bool Hold(int64_t row, bool moved, bool kept) {
    if (moved) held_->Moved(row);
    rows_[row].due.reset();
    if (kept) rows_[row].due = held_->Keep(row, rows_[row].step, state_.theta());
    return rows_[row].due.has_value();
  }

  const std::shared_ptr<const JobPlan> plan_;
  const std::shared_ptr<const ModelFile> module_;          // null: no stored network, or no start from a file
  const std::shared_ptr<std::vector<int32_t>> evaluated_;  // the chain of each row that the potential evaluates
  const std::unique_ptr<Potential> potential_;
  const Kernel kernel_;
  const Device device_;
  const std::vector<std::string> names_;  // names of state_.arenas
  const StepPlan steps_;
  const std::vector<Point> points_;  // points of the sweep, or the only one
  const MinibatchPlan batches_;
  ChainReporter reporter_;
  ChainTracer tracer_;
  std::vector<ParameterShape> draw_tensors_;
  SamplerState state_;
  std::optional<HoldingTime> held_;  // for Metropolis kernels
  StepScratch scratch_;
  std::vector<Row> rows_;
  Unread unread_;
  size_t measured_rows_ = 0;  // number of rows in the step that gave chain_bytes_
  int64_t chain_bytes_ = 0;
  mutable std::map<std::pair<DrawKind, int32_t>, std::vector<float>> statistics_;  // for draws after the last step
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChainBatch>> ChainBatch::Create(std::shared_ptr<const JobPlan> plan,
                                                               std::shared_ptr<const ResidentDataset> dataset,
                                                               const std::string& device,
                                                               std::shared_ptr<const ModelFile> module) {
  CHAINFLEET_ASSIGN_OR_RETURN(const Device where, ParseDevice(device));
  CHAINFLEET_RETURN_IF_ERROR(CheckDeviceIsThere(where));
  if (plan->spec.precision == Precision::kTf32 && !where.is_cuda()) {
    Log(LogLevel::kWarning, "precision tf32 is for GPUs: this worker's CPU computes in float32", {{"job", plan->job}});
  }
  return CatchTorch(kWork, [&]() -> absl::StatusOr<std::unique_ptr<ChainBatch>> {
    auto evaluated = std::make_shared<std::vector<int32_t>>();
    CHAINFLEET_ASSIGN_OR_RETURN(auto potential, MakePotential(*plan, dataset, where, module.get(), evaluated));
    std::vector<FieldViolation> violations = Validate(plan->spec);
    const auto for_data = ValidateForData(plan->spec, potential->num_examples());
    violations.insert(violations.end(), for_data.begin(), for_data.end());
    const auto of_init = ValidateForSize(plan->spec.init, potential->layout()->num_parameters());
    violations.insert(violations.end(), of_init.begin(), of_init.end());
    CHAINFLEET_RETURN_IF_ERROR(InvalidFields(violations));
    CHAINFLEET_ASSIGN_OR_RETURN(Kernel kernel, MakeKernel(plan->spec.sampler));
    if (plan->spec.kind == JobKind::kSbc) {
      CHAINFLEET_ASSIGN_OR_RETURN(auto simulated, SimulateTargets(*plan, *potential, dataset.get(), module));
      CHAINFLEET_ASSIGN_OR_RETURN(potential,
                                  MakePotential(*plan, std::move(simulated), where, module.get(), evaluated));
      potential = WithBlocks(std::move(potential), evaluated);
    }
    return std::unique_ptr<ChainBatch>(new KernelBatch(std::move(plan), std::move(potential), std::move(kernel), where,
                                                       std::move(module), std::move(evaluated)));
  });
}

}  // namespace chainfleet
