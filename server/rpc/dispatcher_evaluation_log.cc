#include "server/rpc/dispatcher_evaluation_log.h"

#include <utility>

namespace chainfleet {
namespace {

Reply<Dispatcher::StoredEvaluation> Passing(EvaluationLog::Done done) {
  return [done = std::move(done)](const absl::StatusOr<Dispatcher::StoredEvaluation>& stored) {
    if (!stored.ok()) return done(stored.status());
    done(EvaluationLog::Stored{stored->row, stored->replayed});
  };
}

}  // namespace

void DispatcherEvaluationLog::Create(const EvaluationRow& row, Done done) {
  parts_.dispatcher->CreateEvaluation(row, Passing(std::move(done)));
}

void DispatcherEvaluationLog::End(const change::EndEvaluation& end, Done done) {
  parts_.dispatcher->EndEvaluation(end, Passing(std::move(done)));
}

absl::StatusOr<EvaluationRow> DispatcherEvaluationLog::Find(const std::string& id) {
  return parts_.state->FindEvaluation(id);
}

absl::StatusOr<std::vector<EvaluationRow>> DispatcherEvaluationLog::List(const EvaluationQuery& query) {
  return parts_.state->ListEvaluations(query);
}

}  // namespace chainfleet
