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

// ChainBatch::Create on this worker's device, or a fake.
using ChainBatchFactory = std::function<absl::StatusOr<std::unique_ptr<ChainBatch>>(std::shared_ptr<const JobPlan> plan,
                                                                                    const JobInputs& inputs)>;

// Not thread-safe: the device loop drives it. Chains share one ChainBatch until memory does not suffice; then the batch
// is split in half, again and again. Chains join and leave at step boundaries, and the others go on unchanged.
//
// Draws gather in a draft per chain. The draft is closed into one upload, with the resume point of that moment, when
// the next draw would take it over limits::kSegmentBytes, at limits::kSegmentAge, at collect.segment_draws, or when the
// chain ends or is handed back. Without draws a resume point alone goes up every resume_point_every_steps, or by time:
// a chain's first here after limits::kResumePointInterval, each later one when so long has passed that saving all
// chains of the job takes 1/limits::kResumePointFactor of it. No batch steps while one of its uploads waits for room.
class ChainBatchRunner {
 public:
  ChainBatchRunner(std::shared_ptr<const JobPlan> plan, JobInputs inputs, ChainBatchFactory factory, HeldChains* held,
                   DrawUploader* uploader, RuntimeObserver* observer, const Clock* clock);

  // A chain whose plan or resume point this build cannot take is released with the reason, and one whose job is wrong.
  void Join(const LoadedChain& chain);

  // At a step boundary: forgets chains that are no longer held, hands back those that are asked for, closes old drafts,
  // offers waiting uploads again. `usual_step`: for the bound on hung steps. True if anything happened.
  bool Settle(absl::Duration usual_step);

  // Settles is called before. Steps the next batch that may step; false if none may.
  bool StepNext();

  // The longest median step of its batches, for the bound on hung steps.
  absl::Duration median_step() const;

  bool empty() const { return parts_.empty(); }

 private:
  // A chain: in its batch, parked outside it as bytes (its lease ended and the others' did not), or gone from it with
  // an upload that still waits for room.
  struct Row {
    LeaseRef lease;
    int64_t step = 0;
    ChainStats stats;
    ChainTrace trace;  // of the steps after the last resume point closed; a commit takes the newest kTraceWindow
    bool in_batch = true;
    bool leaving = false;
    std::optional<std::string> parked;
    std::vector<Draw> draft;
    absl::Duration draft_since;
    int64_t saved_step = 0;  // of the last resume point closed
    absl::Duration saved_at;
    std::optional<absl::Duration> saving;  // the job's steps waited so long for it, from saved_at until it had room
    std::optional<ProgressUpload> unsent;
    Standing standing;
  };

  struct Part {
    std::unique_ptr<ChainBatch> batch;
    std::map<int32_t, Row> rows;
    StepTimer timer;
  };

  absl::StatusOr<Part*> PartWithRoom();
  // `work` on the part, true if anything happened; what it throws fails all chains of the part.
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
  void Fail(Part* part, Row* row, const std::string& reason);
  void FailAll(Part* part, const absl::Status& status);
  // Parks half of the chains in a part of their own. `why`: what the step said.
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
  size_t max_rows_;  // of a part; halved when memory runs out
  absl::Duration resume_point_interval_;
  absl::Duration saving_until_;  // rows that wait for room together share the time: up to here it is some row's
};

}  // namespace chainfleet
