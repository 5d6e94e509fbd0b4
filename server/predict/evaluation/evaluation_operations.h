// Evaluations as operations: stored before they are acknowledged, run a few at a time, run again after a restart.
// Results are stored before any client sees them.
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

namespace limits {
inline constexpr size_t kEvaluationWatchers = 64;  // callers that watch one evaluation
inline constexpr absl::Duration kMemoryPatience = absl::Minutes(1);
}  // namespace limits

// Encodes the parts that the log keeps as opaque text.
struct EvaluationCodec {
  std::function<absl::StatusOr<EvaluateQuery>(const std::string& request)> query;
  std::function<std::string(const Evaluation& evaluation)> result;
};

// "eval-" and 10 characters of base32, derived from `key`.
std::string MakeEvaluationId(RngKey key);

// Thread-safe. The constructor's arguments outlive this object. All callbacks run on the executor, which may block.
//
// At most limits::kRunningEvaluations run and limits::kWaitingEvaluations wait. The oldest of the tenant with the
// fewest running ones is next. One that waits for memory holds back later ones of its tenant, and after
// limits::kMemoryPatience those of others, too. A run that fails for lack of workers, memory or an answer is retried
// with backoff until `longest` after its first start in this process. The operation FAILS only then, or after an error
// that a retry would repeat. Every run of an operation reads the same version, so it has the same result (up to
// rounding, where some workers compute on GPUs).
class EvaluationOperations {
 public:
  EvaluationOperations(const Clock* clock, Executor* executor, Evaluator* evaluator, EvaluationLog* log,
                       EvaluationCodec codec, RngKey id_key, absl::Duration longest = limits::kEvaluateDeadline);

  // Resumes the operations that the log has as running. Called once, before any other call. The log's errors.
  absl::Status Recover();

  struct Asked {
    std::string job, tenant;    // the job's id
    bool shared = false;        // tenants share the server: this one gets half of the places at most
    std::string request_id;     // empty: none
    std::string trace_id = {};  // trace id of the call, for the log line that says which operation it started
    EvaluateQuery query;
    std::function<std::string(int64_t version)> request;  // encoded for the log: the query on that version
  };
  struct View {
    EvaluationRow row;
    std::optional<EvaluationProgress> progress;  // while it runs
  };
  // Starts an operation, or returns the existing one with the tenant's request_id. Errors: those of Evaluator::Check
  // and of the log; RESOURCE_EXHAUSTED / QUEUE_FULL or TENANT_LIMIT. Nothing is stored on an error.
  void Start(Asked asked, absl::Duration timeout, std::function<void(absl::StatusOr<View>)> done);

  // NOT_FOUND, also for an operation of another tenant.
  void Get(const std::string& id, const std::string& tenant, std::function<void(absl::StatusOr<View>)> done);

  // Ends the operation as CANCELLED. An operation that has ended stays as it is. NOT_FOUND.
  void Cancel(const std::string& id, std::function<void(absl::StatusOr<View>)> done);

  // Watches an operation that Start or Get returned. `progress` runs on each progress, and again when callers that have
  // gone must make room. If it returns false, its caller has gone, and neither callback runs again. `ended` runs once,
  // with the stored row, at once if the operation has ended already. NOT_FOUND, also if the operation is deleted with
  // its job meanwhile. UNAVAILABLE: the operation is stored but has not started yet. RESOURCE_EXHAUSTED / QUEUE_FULL:
  // limits::kEvaluationWatchers watch it already.
  void Watch(const EvaluationRow& row, std::function<bool(const EvaluationProgress&)> progress,
             std::function<void(absl::StatusOr<EvaluationRow>)> ended);

 private:
  struct State;
  explicit EvaluationOperations(std::shared_ptr<State> state) : state_(std::move(state)) {}

  const std::shared_ptr<State> state_;
};

}  // namespace chainfleet
