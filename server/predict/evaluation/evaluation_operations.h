// Evaluations as operations: stored before they are acknowledged, run a few at a time, run again after a restart, their
// results stored before anyone is told.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/rng_key.h"
#include "core/base/status.h"
#include "server/predict/evaluation/evaluation.h"
#include "server/predict/evaluation/evaluation_log.h"

namespace chainfleet {

// What the log keeps as opaque bytes.
struct EvaluationCodec {
  std::function<absl::StatusOr<EvaluateQuery>(const std::string& request)> query;
  std::function<std::string(const Evaluation& evaluation)> result;
};

// "eval-" and 10 characters of base32, from the key.
std::string MakeEvaluationId(RngKey key);

// Thread-safe. What it is given outlives it; all callbacks run on the executor, which may block.
//
// At most limits::kRunningEvaluations run, the oldest first, and limits::kWaitingEvaluations wait. A run that fails for
// want of workers, room or an answer is begun again, with backoff, until `longest` after its first
// start in this process: only then, or by an error that would come again, the operation FAILS. Every run of an
// operation rests on the same version, so it has the same result (up to rounding, where some
// workers compute on GPUs).
class EvaluationOperations {
 public:
  EvaluationOperations(const Clock* clock, Executor* executor, Evaluator* evaluator, EvaluationLog* log,
                       EvaluationCodec codec, RngKey id_key, absl::Duration longest = limits::kEvaluateDeadline);

  // Goes on with what the log has under way; once, before any other call. The log's errors.
  absl::Status Recover();

  struct Asked {
    std::string job, tenant;    // the job's id
    std::string request_id;     // empty: none
    std::string trace_id = {};  // of the call, for the log line that says which operation it began
    EvaluateQuery query;
    std::function<std::string(int64_t version)> request;  // as the log keeps it: the query on that version
  };
  struct View {
    EvaluationRow row;
    std::optional<EvaluationProgress> progress;  // while it runs
  };
  // The operation of the tenant's request_id if there is one. Errors: those of Evaluator::Check and of the log;
  // RESOURCE_EXHAUSTED / QUEUE_FULL. Nothing is stored then.
  void Start(Asked asked, absl::Duration timeout, std::function<void(absl::StatusOr<View>)> done);

  // NOT_FOUND.
  void Get(const std::string& id, std::function<void(absl::StatusOr<View>)> done);

  // Ends it as CANCELLED; one that has ended stays as it is. NOT_FOUND.
  void Cancel(const std::string& id, std::function<void(absl::StatusOr<View>)> done);

  // `progress` runs whenever there is some, until it says false; `ended` once, with the row as it was stored. At once
  // if it has ended already. NOT_FOUND, also if it goes with its job meanwhile. UNAVAILABLE: it is stored, and about to
  // begin.
  void Watch(const std::string& id, std::function<bool(const EvaluationProgress&)> progress,
             std::function<void(absl::StatusOr<EvaluationRow>)> ended);

 private:
  struct State;
  explicit EvaluationOperations(std::shared_ptr<State> state) : state_(std::move(state)) {}

  const std::shared_ptr<State> state_;
};

}  // namespace chainfleet
