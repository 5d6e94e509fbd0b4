// A ChainBatch whose draws are a function of (chain, step), so that tests know them for any interruptions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_clock.h"
#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet {

// All fake batches of a test share one script, which the test may change while they run.
struct FakeBatchScript {
  int64_t total_steps = 20;
  int64_t collect_every = 2;
  int64_t trace_every = 0;  // 0: never
  int64_t dimension = 8;
  absl::Duration step_time = absl::Milliseconds(100);
  absl::Duration save_time;                       // time to save a resume point
  std::map<int32_t, int64_t> diverges_at;         // chain -> step
  int64_t reports_late_by = 0;                    // steps until a report shows it
  std::optional<size_t> max_rows;                 // more rows run out of memory
  absl::Status step_status;                       // the error of Step; OK: none
  std::optional<absl::Status> create_status;      // the result of the factory
  std::function<void(int32_t, int64_t)> on_step;  // (chain, step)
  std::function<void()> on_call = [] {};          // runs in methods without a status; it may throw
  int64_t steps_taken = 0;                        // steps of all batches
  std::vector<size_t> rows_of_steps;              // rows that each step moved
};

class FakeChainBatch final : public ChainBatch {
 public:
  FakeChainBatch(FakeBatchScript* script, FakeClock* clock, size_t num_kinds)
      : script_(script), clock_(clock), num_kinds_(num_kinds) {
    parameters_.push_back({"theta", {script->dimension}, 0, 1});
  }

  static float Coordinate(int32_t chain, int64_t step, size_t kind, int64_t i) {
    return static_cast<float>(chain) * 1000.0f + static_cast<float>(step) + 0.25f * static_cast<float>(kind) +
           0.001f * static_cast<float>(i);
  }

  absl::Status AddChain(int32_t index, const std::optional<std::string>& resume_point, const std::string*) override {
    if (rows_.contains(index)) return absl::AlreadyExistsError("chain is in the batch");
    rows_[index] = resume_point ? std::stoll(*resume_point) : 0;
    return absl::OkStatus();
  }
  void RemoveChain(int32_t index) override {
    script_->on_call();
    rows_.erase(index);
  }
  std::vector<int32_t> chains() const override {
    std::vector<int32_t> indices;
    for (const auto& [index, step] : rows_) indices.push_back(index);
    return indices;
  }
  int64_t StepsDone(int32_t index) const override { return rows_.at(index); }

  absl::StatusOr<std::vector<RowReport>> Step() override {
    if (!script_->step_status.ok()) return script_->step_status;
    if (script_->max_rows && rows_.size() > *script_->max_rows) return absl::ResourceExhaustedError("out of memory");
    clock_->Advance(script_->step_time);
    ++script_->steps_taken;
    script_->rows_of_steps.push_back(rows_.size());
    std::vector<RowReport> reports;
    for (auto& [index, step] : rows_) {
      ++step;
      if (script_->on_step) script_->on_step(index, step);
      RowReport report;
      report.chain = index;
      report.step = step;
      const bool collects = step % script_->collect_every == 0;
      report.finite = IsFiniteAfter(index, collects ? step : step - script_->reports_late_by);
      report.draw_due = report.finite && collects;
      report.done = step == script_->total_steps;
      if (script_->trace_every > 0 && step % script_->trace_every == 0) {
        report.trace = {static_cast<double>(1000 * index + step)};
      }
      reports.push_back(report);
    }
    return reports;
  }

  Draw TakeDraw(int32_t index) const override {
    script_->on_call();
    Draw draw;
    draw.step = rows_.at(index);
    for (size_t kind = 0; kind < num_kinds_; ++kind) {
      auto& values = draw.theta.emplace_back();
      for (int64_t i = 0; i < script_->dimension; ++i) {
        values.push_back(Coordinate(index, rows_.at(index), kind, i));
      }
    }
    return draw;
  }
  std::optional<Draw> GiveUpHeld(int32_t) override {
    script_->on_call();
    return std::nullopt;
  }
  bool IsFinite(int32_t index) override { return IsFiniteAfter(index, rows_.at(index)); }
  std::string SaveResumePoint(int32_t index) const override {
    script_->on_call();
    clock_->Advance(script_->save_time);
    return std::to_string(rows_.at(index));
  }
  const std::vector<ParameterShape>& parameters() const override { return parameters_; }
  const std::vector<std::string>& trace_quantities() const override { return quantities_; }

 private:
  bool IsFiniteAfter(int32_t index, int64_t step) const {
    const auto diverges = script_->diverges_at.find(index);
    return diverges == script_->diverges_at.end() || step < diverges->second;
  }

  FakeBatchScript* const script_;
  FakeClock* const clock_;
  const size_t num_kinds_;
  std::map<int32_t, int64_t> rows_;  // chain -> step
  std::vector<ParameterShape> parameters_;
  const std::vector<std::string> quantities_ = {"place"};
};

}  // namespace chainfleet
