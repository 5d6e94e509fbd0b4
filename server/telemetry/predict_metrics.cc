#include "server/telemetry/predict_metrics.h"

#include <string>
#include <vector>

namespace chainfleet {
namespace {

Histogram& Stage(MetricsRegistry* registry, const std::string& stage) {
  return registry->AddHistogram(
      "chainfleet_prediction_stage_seconds", "Seconds spent on answered predictions, by stage.",
      {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
      {{"stage", stage}});
}

std::vector<double> PowersOfTwo(int highest) {
  std::vector<double> bounds;
  for (int power = 0; power <= highest; ++power) bounds.push_back(1 << power);
  return bounds;
}

}  // namespace

PredictMetrics::PredictMetrics(MetricsRegistry* registry)
    : queue_(Stage(registry, "queue")),
      lookup_(Stage(registry, "lookup")),
      workers_(Stage(registry, "workers")),
      reduce_(Stage(registry, "reduce")),
      total_(Stage(registry, "total")),
      batch_requests_(registry->AddHistogram("chainfleet_prediction_batch_requests",
                                             "Requests in one batch of predictions.", PowersOfTwo(8))),
      batch_rows_(registry->AddHistogram("chainfleet_prediction_batch_rows", "Rows in one batch of predictions.",
                                         PowersOfTwo(16))),
      draws_(registry->AddHistogram("chainfleet_prediction_draws", "Draws averaged for one batch of predictions.",
                                    PowersOfTwo(16))) {}

void PredictMetrics::OnRequest(absl::Duration total, absl::Duration queue) {
  total_.Observe(absl::ToDoubleSeconds(total));
  queue_.Observe(absl::ToDoubleSeconds(queue));
}

void PredictMetrics::OnBatch(int64_t requests, int64_t rows) {
  batch_requests_.Observe(static_cast<double>(requests));
  batch_rows_.Observe(static_cast<double>(rows));
}

void PredictMetrics::OnAverage(const AverageFigures& figures) {
  lookup_.Observe(absl::ToDoubleSeconds(figures.lookup));
  workers_.Observe(absl::ToDoubleSeconds(figures.workers));
  reduce_.Observe(absl::ToDoubleSeconds(figures.reduce));
  draws_.Observe(static_cast<double>(figures.draws));
}

}  // namespace chainfleet
