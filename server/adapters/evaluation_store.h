// The EvaluationLog over the StateWriter (changes) and the StateStore (reads).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/control/event_log.h"
#include "server/control/state_writer.h"
#include "server/predict/evaluation/evaluation_log.h"

namespace chainfleet {

// Writer and store outlive the log. Evaluations begin and end as events of their jobs.
class EvaluationStore final : public EvaluationLog {
 public:
  EvaluationStore(StateWriter* writer, StateStore* store, std::shared_ptr<EventLog> events)
      : writer_(writer), store_(store), events_(std::move(events)) {}

  void Create(const EvaluationRow& row, Done done) override { Write(change::CreateEvaluation{row}, done); }
  void End(const change::EndEvaluation& end, Done done) override { Write(end, done); }
  absl::StatusOr<EvaluationRow> Find(const std::string& id, const std::string& tenant) override {
    return store_->FindEvaluation(id, tenant);
  }
  absl::StatusOr<std::vector<EvaluationRow>> List(const EvaluationQuery& query) override {
    return store_->ListEvaluations(query);
  }

 private:
  void Write(StateChange change, const Done& done) {
    writer_->Write<Stored>(std::move(change), done, [events = events_](const ApplyResult& result) {
      const EvaluationRow& row = *result.evaluation;
      if (!result.replayed) Note(events.get(), row);
      return Stored{row, result.replayed};
    });
  }
  static void Note(EventLog* events, const EvaluationRow& row) {
    constexpr const char* kEvents[] = {"", "evaluation begun", "evaluation succeeded", "evaluation failed",
                                       "evaluation cancelled"};
    events->Add(row.state == EvaluationState::kFailed ? LogLevel::kWarning : LogLevel::kInfo,
                kEvents[static_cast<int>(row.state)],
                {{"job", row.job}, {"evaluation", row.id}, {"error", row.error.message()}});
  }

  StateWriter* const writer_;
  StateStore* const store_;
  const std::shared_ptr<EventLog> events_;
};

}  // namespace chainfleet
