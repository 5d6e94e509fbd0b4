// The store of evaluations. Implemented over the Dispatcher and the StateStore.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/store/state_store/state_change.h"

namespace chainfleet {

// Thread-safe.
class EvaluationLog {
 public:
  virtual ~EvaluationLog() = default;

  struct Stored {
    EvaluationRow row;
    bool replayed = false;  // the row existed, or the evaluation had ended, already
  };
  using Done = std::function<void(absl::StatusOr<Stored>)>;

  // As change::CreateEvaluation and change::EndEvaluation. `done` runs once, on an executor, after the commit.
  virtual void Create(const EvaluationRow& row, Done done) = 0;
  virtual void End(const change::EndEvaluation& end, Done done) = 0;

  // These may block. NOT_FOUND, also for an evaluation of another tenant.
  virtual absl::StatusOr<EvaluationRow> Find(const std::string& id, const std::string& tenant) = 0;
  // Newest first, without results.
  virtual absl::StatusOr<std::vector<EvaluationRow>> List(const EvaluationQuery& query) = 0;
};

}  // namespace chainfleet
