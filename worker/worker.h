// The composition root of chainfleet-worker: makes everything of the lower floors, steps the device on a thread of its
// own, and takes it all down in order.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mutex.h"
#include "core/base/rng_key.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/metrics/metrics.h"
#include "worker/rpc/coordinator_client.h"
#include "worker/rpc/direct_uploads.h"
#include "worker/rpc/predict/shard_predict_stream.h"
#include "worker/runtime/device_loop.h"
#include "worker/runtime/session/worker_session.h"
#include "worker/telemetry/gpu_probe.h"
#include "worker/telemetry/worker_metrics.h"

namespace chainfleet {

struct WorkerOptions {
  std::string server = "127.0.0.1:7400";
  std::string token;            // empty: the server wants none
  std::string id;               // unique in the fleet; empty: host name and process id
  std::string host;             // by which chains are spread; empty: host name
  std::string device = "cpu";   // or cuda:N
  std::string cache_directory;  // data sets between runs; empty: in memory only
  int threads = 1;              // of the CPU's kernels
  int chain_slots = 0;          // chains to hold at once; 0: 16 on a CPU, 64 on a GPU
  double memory_gib = 0;        // of the device for chains; 0: HostMemoryBytes on a CPU, 9/10 of what a GPU has free
  double serve_share = 0.5;     // of the device for predictions while chains run
  int64_t draw_cache_mib = limits::kDrawCacheBytes / limits::kMiB;  // of memory for draws between predictions
  static constexpr int kFreePort = -1;
  int metrics_port = 0;                      // 0: none; kFreePort: the server hears which
  std::string metrics_listen = "127.0.0.1";  // the address of that port
  std::string nvml;       // library that tells of GPUs; empty: NVIDIA's own, and only if the device is a GPU
  std::string ca_bundle;  // of trusted certificates of S3; empty: the system's
};

// At most one in a process: the device is the process's.
class Worker final : private RuntimeObserver {
 public:
  // Takes the device and the metrics port; calls nobody yet. INVALID_ARGUMENT, FAILED_PRECONDITION or NOT_FOUND from
  // InitializeDevice; ALREADY_EXISTS / PORT_TAKEN.
  static absl::StatusOr<std::unique_ptr<Worker>> Create(const WorkerOptions& options);

  // Stops the step that runs at its end, then network and disk. Chains that were not handed back before
  // (session().Drain()) wait for their leases to end.
  ~Worker() override;

  // Begins to call the server and to step what it grants. `on_change` runs on any thread, whenever session()'s status()
  // or drained() may be another.
  void Start(std::function<void()> on_change);

  WorkerSession& session() { return session_; }
  const std::string& id() const { return id_; }

 private:
  explicit Worker(const WorkerOptions& options);

  void OnStep(const StepFigures& step) override {
    counters_.AddStep({step.rows, step.gradients, step.accepted, step.rejected, step.took});
  }
  void OnCommit(int64_t draws, int64_t bytes) override { counters_.AddCommit(draws, bytes); }
  void OnShardUnit(absl::Duration took) override { counters_.AddShardUnit(took); }
  void OnShard(const ShardFigures& shard) override { counters_.AddShard(shard.load, shard.wait, shard.compute); }

  void Listen();
  void WatchGpus(const WorkerOptions& options);
  void Wake();
  void Compute();

  SystemClock clock_;
  MetricsRegistry metrics_;
  WorkerMetrics counters_;
  const absl::StatusOr<std::string> metrics_address_;  // where others reach it; empty: not served
  std::unique_ptr<GpuProbe> gpus_;
  const std::string id_, incarnation_;
  const RngKey jitter_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<ThreadPool> puts_;
  std::unique_ptr<ThreadPool> checks_;
  CurlTransport s3_;
  CoordinatorClient client_;
  DirectUploads uploads_;
  HeldChains held_;
  ObjectFetcher fetcher_;
  InputCache inputs_;
  DrawCache draws_;
  ChainLoader loader_;
  DrawUploader uploader_;
  ShardServer shards_;
  DeviceLoop device_;
  WorkerSession session_;
  ShardPredictStream stream_;

  Mutex mutex_;
  CondVar work_;
  bool has_work_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  bool stopping_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  std::thread compute_;
};

}  // namespace chainfleet
