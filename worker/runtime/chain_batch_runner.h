// Steps the chains of one job on this device, and turns their steps into draws, segments and resume points.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/runtime/chain_loader.h"
#include "worker/runtime/session/draw_uploader.h"
#include "worker/runtime/session/held_chains.h"
#include "worker/runtime/session/runtime_observer.h"
#include "worker/runtime/step_timer.h"

namespace chainfleet {

// Creates a batch: ChainBatch::Create on this worker's device, or a fake.
using ChainBatchFactory = std::function<absl::StatusOr<std::unique_ptr<ChainBatch>>(std::shared_ptr<const JobPlan> plan,
                                                                                    const JobInputs& inputs)>;

// Not thread-safe: the device loop drives it. Chains share one ChainBatch until memory runs out; then the batch is
// split in half, repeatedly. Chains join and leave at step boundaries, which does not change the other chains.
//
// Draws gather in a draft per chain. The draft is closed into one upload, together with the resume point of that
// moment, when the next draw would take it over limits::kSegmentBytes or to limits::kMaxSegmentDraws, at
// limits::kSegmentAge, at collect.segment_draws, or when the chain ends or is handed back. Without draws, a resume
// point alone is uploaded every resume_point_every_steps, or by time. By time, a chain's first one here is due after
// limits::kResumePointInterval; each later one when enough time has passed that saving all chains of the job takes
// 1/limits::kResumePointFactor of it. A batch does not step while one of its uploads waits for room.
class ChainBatchRunner {
 public:
  ChainBatchRunner(std::shared_ptr<const JobPlan> plan, JobInputs inputs, ChainBatchFactory factory, HeldChains* held,
                   DrawUploader* uploader, RuntimeObserver* observer, const Clock* clock);

  // Adds a chain. It is released with the reason if this build cannot take its plan or resume point, or if its job is
  // wrong.
  void Join(const LoadedChain& chain);

  // Called at a step boundary: forgets chains that are no longer held, hands back chains on request, closes old drafts,
  // and offers waiting uploads again. `usual_step` bounds hung steps. True if anything happened.
  bool Settle(absl::Duration usual_step);

  // Steps the next batch that may step; false if none may. REQUIRES: Settle was called before.
  bool StepNext();

  // The longest median step of its batches; bounds hung steps.
  absl::Duration median_step() const;

  bool empty() const { return parts_.empty(); }

 private:
  // A chain in one of three places: in its batch; parked outside as bytes (its lease expired while others go on); or
  // out of the batch with an upload that still waits for room.
  struct Row {
    LeaseRef lease;
    int64_t step = 0;
    ChainStats stats;
    ChainTrace trace;  // covers the steps since the last closed resume point; a commit takes the newest kTraceWindow
    bool in_batch = true;
    bool leaving = false;
    std::optional<std::string> parked;
    std::shared_ptr<const std::string> weights;  // the file that its batch borrows; null unless it HoldsDraws
    std::vector<Draw> draft;
    absl::Duration draft_since;
    int64_t saved_step = 0;  // step of the last closed resume point
    absl::Duration saved_at;
    // The time from saved_at until the upload had room, during which the job's steps waited.
    std::optional<absl::Duration> saving;
    std::optional<ProgressUpload> unsent;
    Standing standing;
  };

  struct Part {
    std::unique_ptr<ChainBatch> batch;
    std::map<int32_t, Row> rows;
    StepTimer timer;
  };

  absl::StatusOr<Part*> PartWithRoom();
  // Errors of ChainBatch::AddChain. DATA_LOSS: the bytes of its resume point are of another step than the chain.
  absl::Status AddToBatch(Part* part, const LoadedChain& loaded);
  // Runs `work` on the part; true if anything happened. An exception fails all chains of the part.
  bool Guarded(Part* part, const std::function<bool()>& work);
  bool SettlePart(Part* part, absl::Duration usual_step);
  bool SettleRow(Part* part, Row* row);
  bool ParkOrReturn(Part* part);
  bool MayStep(const Part& part) const;
  void Step(Part* part);
  void TakeReport(Part* part, const RowReport& report);
  void LogWarnings(const RowReport& report, const LeaseRef& lease) const;
  void AddTrace(const Part& part, const RowReport& report, Row* row) const;
  void AddDraw(Draw draw, Row* row);
  bool SegmentIsFull(const Row& row) const;
  bool ResumePointIsDue(const Row& row) const;
  void Diverge(Part* part, Row* row);
  absl::Duration ResumePointInterval() const;
  void Close(Part* part, Row* row, std::optional<ChainState> ends_as, const std::string& reason);
  bool Send(Row* row);
  void LeaveBatch(Part* part, Row* row);
  void Fail(Part* part, Row* row, const std::string& reason, ReleasedChain::Why why = ReleasedChain::Why::kFailed);
  void FailAll(Part* part, const absl::Status& status);
  // Parks half of the chains in a part of their own. `why` is the error of the step.
  void Split(Part* part, const absl::Status& why);

  const std::shared_ptr<const JobPlan> plan_;
  const JobInputs inputs_;
  const ChainBatchFactory factory_;
  HeldChains* const held_;
  DrawUploader* const uploader_;
  RuntimeObserver* const observer_;
  const Clock* const clock_;
  std::vector<std::unique_ptr<Part>> parts_;
  size_t next_part_ = 0;
  size_t max_rows_;  // in a part; halved when memory runs out
  absl::Duration resume_point_interval_;
  // Rows that wait for room at the same time share the waiting time. Up to here it is already counted for some row.
  absl::Duration saving_until_;
};

}  // namespace chainfleet
