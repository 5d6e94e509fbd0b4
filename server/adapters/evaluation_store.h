// The EvaluationLog over the StateWriter (changes) and the StateStore (reads).
#pragma once

#include <string>
#include <vector>

#include "server/control/state_writer.h"
#include "server/predict/evaluation/evaluation_log.h"

namespace chainfleet {

// Writer and store outlive the log.
class EvaluationStore final : public EvaluationLog {
 public:
  EvaluationStore(StateWriter* writer, StateStore* store) : writer_(writer), store_(store) {}

  void Create(const EvaluationRow& row, Done done) override { Write(change::CreateEvaluation{row}, done); }
  void End(const change::EndEvaluation& end, Done done) override { Write(end, done); }
  absl::StatusOr<EvaluationRow> Find(const std::string& id) override { return store_->FindEvaluation(id); }
  absl::StatusOr<std::vector<EvaluationRow>> List(const EvaluationQuery& query) override {
    return store_->ListEvaluations(query);
  }

 private:
  void Write(StateChange change, const Done& done) {
    writer_->Write<Stored>(std::move(change), done, [](const ApplyResult& result) {
      return Stored{*result.evaluation, result.replayed};
    });
  }

  StateWriter* const writer_;
  StateStore* const store_;
};

}  // namespace chainfleet
