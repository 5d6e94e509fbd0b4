// The EvaluationLog over the Dispatcher (changes) and the StateStore (reads).
#pragma once

#include <string>
#include <vector>

#include "server/predict/evaluation_log.h"
#include "server/rpc/services.h"

namespace chainfleet {

class DispatcherEvaluationLog final : public EvaluationLog {
 public:
  explicit DispatcherEvaluationLog(ServiceParts parts) : parts_(std::move(parts)) {}

  void Create(const EvaluationRow& row, Done done) override;
  void End(const change::EndEvaluation& end, Done done) override;
  absl::StatusOr<EvaluationRow> Find(const std::string& id) override;
  absl::StatusOr<std::vector<EvaluationRow>> List(const EvaluationQuery& query) override;

 private:
  const ServiceParts parts_;
};

}  // namespace chainfleet
