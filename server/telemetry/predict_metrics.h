// Metrics of predictions. docs/reference/metrics.md has the table.
#pragma once

#include "core/metrics/metrics.h"
#include "server/predict/serving/predict_observer.h"

namespace chainfleet {

// Thread-safe. `registry` outlives it.
class PredictMetrics final : public PredictObserver {
 public:
  explicit PredictMetrics(MetricsRegistry* registry);

  void OnRequest(absl::Duration total, absl::Duration queue) override;
  void OnBatch(int64_t requests, int64_t rows) override;
  void OnAverage(const AverageFigures& figures) override;

 private:
  Histogram& queue_;
  Histogram& lookup_;
  Histogram& workers_;
  Histogram& reduce_;
  Histogram& total_;
  Histogram& batch_requests_;
  Histogram& batch_rows_;
  Histogram& draws_;
};

}  // namespace chainfleet
