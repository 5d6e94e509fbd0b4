#include "server/telemetry/server_metrics.h"

namespace chainfleet {
namespace {

Counter& RefusedUploads(MetricsRegistry* registry, const std::string& outcome) {
  return registry->AddCounter("chainfleet_uploads_refused_total",
                              "Uploads of chain objects that were refused, by reason.", {{"outcome", outcome}});
}

}  // namespace

Gauge& AddLeaderGauge(MetricsRegistry* registry) {
  return registry->AddGauge("chainfleet_leader", "1 on the leading coordinator, 0 on a standby.");
}

ServerMetrics::ServerMetrics(MetricsRegistry* registry)
    : registry_(registry),
      draws_(registry->AddGauge("chainfleet_draws", "Committed draws of all jobs that are not deleted.")),
      corrupt_draws_(
          registry->AddCounter("chainfleet_corrupt_draws_total", "Committed draw objects found damaged or missing.")),
      refused_tokens_(registry->AddCounter("chainfleet_tokens_refused_total", "Calls with a missing or wrong token.")),
      lost_audit_lines_(registry->AddCounter("chainfleet_audit_lines_lost_total",
                                             "Lines of the audit log that could not be written.")),
      corrupt_segments_(
          registry->AddGauge("chainfleet_corrupt_segments", "Segments marked corrupt, whose draws are not served.")),
      workers_(registry->AddGauge("chainfleet_workers", "Workers that synchronised within their lease.")),
      serving_workers_(
          registry->AddGauge("chainfleet_serving_workers", "Workers with an open stream for predictions.")),
      chain_slots_(registry->AddGauge("chainfleet_chain_slots", "Total chain slots of connected workers.")),
      waiting_chains_(
          registry->AddGauge("chainfleet_waiting_chains", "Chains of running jobs that wait for a worker.")),
      waiting_seconds_(
          registry->AddGauge("chainfleet_waiting_seconds", "Seconds that the longest-waiting chain has waited.")),
      data_size_(
          registry->AddGauge("chainfleet_data_size_bytes", "Size in bytes of the disk that holds the data directory.")),
      data_free_(
          registry->AddGauge("chainfleet_data_free_bytes", "Free bytes on the disk that holds the data directory.")) {
  AddLeaderGauge(registry).Set(1);
  for (int state = 0; state <= static_cast<int>(JobState::kDeleting); ++state) {
    const auto value = static_cast<JobState>(state);
    jobs_[value] = &registry->AddGauge("chainfleet_jobs", "Jobs by state.", {{"state", ToString(value)}});
  }
  for (int state = 0; state <= static_cast<int>(ChainState::kCancelled); ++state) {
    const auto value = static_cast<ChainState>(state);
    chains_[value] = &registry->AddGauge("chainfleet_chains", "Chains by state.", {{"state", ToString(value)}});
  }
  for (const char* reason : {"LEASE_FENCED", "DISK_FULL"}) RefusedUploads(registry, reason);
}

void ServerMetrics::CountRpc(const std::string& method, const std::string& code, absl::Duration duration) {
  Counter* counter;
  Histogram* histogram;
  {
    MutexLock lock(&mutex_);
    Counter*& c = rpcs_[{method, code}];
    if (c == nullptr) {
      c = &registry_->AddCounter("chainfleet_grpc_handled_total", "Finished RPCs by method and status code.",
                                 {{"method", method}, {"code", code}});
    }
    Histogram*& h = durations_[method];
    if (h == nullptr) {
      h = &registry_->AddHistogram(
          "chainfleet_grpc_handling_seconds", "Seconds from the start of an RPC to its status.",
          {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}, {{"method", method}});
    }
    counter = c;
    histogram = h;
  }
  counter->Add();
  histogram->Observe(absl::ToDoubleSeconds(duration));
}

void ServerMetrics::CountRefusedUpload(const absl::Status& why) { RefusedUploads(registry_, ReasonOrCode(why)).Add(); }

void ServerMetrics::CountRefusedCall(const absl::Status& why) {
  registry_
      ->AddCounter("chainfleet_refused_calls_total", "Calls refused as RESOURCE_EXHAUSTED, by reason and bound.",
                   {{"reason", ReasonOrCode(why)}, {"bound", BoundOf(why)}})
      .Add();
}

void ServerMetrics::Show(const FleetCounts& counts) {
  const auto value = [](const auto& map, auto key) {
    const auto it = map.find(key);
    return it == map.end() ? 0.0 : static_cast<double>(it->second);
  };
  for (auto& [state, gauge] : jobs_) gauge->Set(value(counts.jobs, state));
  for (auto& [state, gauge] : chains_) gauge->Set(value(counts.chains, state));
  draws_.Set(static_cast<double>(counts.draws));
  if (counts.corrupt_segments) corrupt_segments_.Set(static_cast<double>(*counts.corrupt_segments));
  workers_.Set(static_cast<double>(counts.workers));
  serving_workers_.Set(static_cast<double>(counts.serving_workers));
  chain_slots_.Set(static_cast<double>(counts.chain_slots));
  waiting_chains_.Set(static_cast<double>(counts.waiting_chains));
  waiting_seconds_.Set(absl::ToDoubleSeconds(counts.oldest_wait));
  if (!counts.data) return;
  data_size_.Set(static_cast<double>(counts.data->size_bytes));
  data_free_.Set(static_cast<double>(counts.data->free_bytes));
}

void ServerMetrics::ShowScale(const ScaleShown& shown) {
  const std::initializer_list<std::pair<const char*, int64_t>> states = {
      {"desired", shown.desired}, {"pending", shown.pending}, {"running", shown.running}, {"ending", shown.ending}};
  for (const auto& [state, count] : states) {
    registry_->AddGauge("chainfleet_scale_workers", "Workers managed by the scaler, by state.", {{"state", state}})
        .Set(static_cast<double>(count));
  }
  MutexLock lock(&mutex_);
  registry_->AddCounter("chainfleet_scale_errors_total", "Cluster commands that failed.")
      .Add(static_cast<double>(shown.errors - scale_shown_.errors));
  registry_->AddCounter("chainfleet_scale_lost_jobs_total", "Cluster jobs that ended before their worker joined.")
      .Add(static_cast<double>(shown.lost_jobs - scale_shown_.lost_jobs));
  scale_shown_ = shown;
}

}  // namespace chainfleet
