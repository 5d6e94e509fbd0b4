// Where evaluations are kept. Implemented over the Dispatcher and the StateStore.
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
    bool replayed = false;  // it was there, or had ended, already
  };
  using Done = std::function<void(absl::StatusOr<Stored>)>;

  // As change::CreateEvaluation and change::EndEvaluation, committed when `done` runs: once, on an executor.
  virtual void Create(const EvaluationRow& row, Done done) = 0;
  virtual void End(const change::EndEvaluation& end, Done done) = 0;

  // These may block. NOT_FOUND.
  virtual absl::StatusOr<EvaluationRow> Find(const std::string& id) = 0;
  // Newest first, without results.
  virtual absl::StatusOr<std::vector<EvaluationRow>> List(const EvaluationQuery& query) = 0;
};

}  // namespace chainfleet
