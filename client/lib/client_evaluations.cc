// The methods of Client for evaluations, which are operations.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/lib/client_calls.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kFirstLook = absl::Milliseconds(50), kLongestLook = absl::Seconds(1);

v1::GetEvaluationRequest Named(const std::string& id) {
  v1::GetEvaluationRequest request;
  request.set_id(id);
  return request;
}

}  // namespace

absl::StatusOr<v1::EvaluationOperation> Client::StartEvaluation(const v1::EvaluateRequest& request) {
  return Call<v1::PredictService>(&v1::PredictService::Stub::StartEvaluation, request);
}

absl::StatusOr<v1::EvaluationOperation> Client::GetEvaluation(const std::string& id) {
  return Call<v1::PredictService>(&v1::PredictService::Stub::GetEvaluation, Named(id));
}

absl::StatusOr<v1::EvaluationOperation> Client::CancelEvaluation(const std::string& id) {
  return Call<v1::PredictService>(&v1::PredictService::Stub::CancelEvaluation, Named(id));
}

absl::StatusOr<std::vector<v1::EvaluationOperation>> Client::ListEvaluations(const std::string& job) {
  v1::ListEvaluationsRequest request;
  request.set_job(job);
  return AllPages<v1::EvaluationOperation>(
      request,
      [&](const auto& page) { return Call<v1::PredictService>(&v1::PredictService::Stub::ListEvaluations, page); },
      [](auto& reply) { return reply.mutable_evaluations(); });
}

absl::StatusOr<v1::Evaluation> Client::WaitEvaluation(
    const std::string& id, absl::Duration timeout,
    const std::function<void(const v1::EvaluateUpdate::Progress&)>& on_progress) {
  const absl::Duration end = clock_->Monotonic() + timeout;
  absl::Duration last_heard = clock_->Monotonic();
  for (absl::Duration wait = kFirstLook;; wait = std::min(2 * wait, kLongestLook)) {
    auto operation = GetEvaluation(id);
    if (operation.ok()) {
      last_heard = clock_->Monotonic();
      using Operation = v1::EvaluationOperation;
      if (operation->state() == Operation::SUCCEEDED) return std::move(*operation->mutable_evaluation());
      if (operation->state() != Operation::RUNNING) {
        return absl::AbortedError(absl::StrCat("evaluation ", id, " ended ", Operation::State_Name(operation->state()),
                                               operation->error().empty() ? "" : ": ", operation->error()));
      }
      on_progress(operation->progress());
    } else if (!absl::IsUnavailable(operation.status()) || clock_->Monotonic() - last_heard >= options_.patience) {
      return operation.status();
    }
    if (clock_->Monotonic() + wait >= end) {
      return absl::DeadlineExceededError(
          absl::StrCat("evaluation ", id, " still runs after ", absl::FormatDuration(timeout)));
    }
    sleep_(wait);
  }
}

absl::StatusOr<v1::Evaluation> Client::Evaluate(
    const v1::EvaluateRequest& request, const std::function<void(const v1::EvaluateUpdate::Progress&)>& on_progress) {
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::EvaluationOperation started, StartEvaluation(request));
  return WaitEvaluation(started.id(), absl::InfiniteDuration(), on_progress);
}

}  // namespace chainfleet
