// The composition root of chainfleet-worker: creates everything of the lower floors, steps the device on its own
// thread, and shuts down in order.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mutex.h"
#include "core/base/reread.h"
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
  Reread<std::string> token;    // read again at each join; empty: none is sent
  bool token_printed = false;   // a command prints it: read again only after a refused join
  TlsFiles tls;                 // for calls to the server; plaintext if there is none
  std::string id;               // unique in the fleet; empty: host name and process id
  std::string host;             // chains are spread by it; empty: host name
  std::string device = "cpu";   // or cuda:N
  std::string cache_directory;  // keeps data sets between runs; empty: memory only
  int threads = 1;              // for the CPU's kernels
  int chain_slots = 0;          // chains held at once; 0: 16 on a CPU, 64 on a GPU
  double memory_gib = 0;        // for chains on the device; 0: HostMemoryBytes on a CPU, 9/10 of a GPU's free memory
  double serve_share = 0.5;     // share of the device for predictions while chains run
  int64_t draw_cache_mib = limits::kDrawCacheBytes / limits::kMiB;  // memory for draws between predictions
  static constexpr int kFreePort = -1;
  int metrics_port = 0;                      // 0: none; kFreePort: any, reported to the server
  std::string metrics_listen = "127.0.0.1";  // the address of that port
  Reread<std::string> metrics_token;         // bearer token that scrapes must send, read again; empty: none
  TlsFiles metrics_tls;                      // for that port; plaintext without a certificate
  std::string nvml;       // library for GPU readings; empty: NVIDIA's own, only if the device is a GPU
  std::string ca_bundle;  // trusted certificates of S3; empty: the system's
};

// At most one in a process, because the process owns the device.
class Worker final : private RuntimeObserver {
 public:
  // Takes the device and the metrics port; makes no calls yet. INVALID_ARGUMENT, FAILED_PRECONDITION or NOT_FOUND from
  // InitializeDevice; ALREADY_EXISTS / PORT_TAKEN.
  static absl::StatusOr<std::unique_ptr<Worker>> Create(const WorkerOptions& options);

  // Waits for the end of the running step, then stops network and disk. Chains that were not handed back before
  // (session().Drain()) wait until their leases expire.
  ~Worker() override;

  // Begins to call the server and to step granted chains. `on_change` runs on any thread whenever session()'s status()
  // or drained() may have changed.
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
  const absl::StatusOr<std::string> metrics_address_;  // address at which others reach it; empty: not served
  std::unique_ptr<GpuProbe> gpus_;
  const std::string id_;
  WorkerCredentials credentials_;
  const std::string& incarnation_;
  const RngKey jitter_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<ThreadPool> puts_;
  std::unique_ptr<ThreadPool> checks_;
  std::unique_ptr<ThreadPool> starter_;
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
