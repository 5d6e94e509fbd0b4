#include "worker/worker.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/environment.h"
#include "core/base/host_memory.h"
#include "core/base/host_port.h"
#include "core/base/log.h"
#include "core/base/process_limits.h"
#include "core/base/random_bits.h"
#include "core/metrics/certificate_expiry.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/arena/device_memory.h"
#include "worker/numerics/models/module_process.h"

namespace chainfleet {
namespace {

constexpr int kIoThreads = 2;     // encode, hash, decode, disk; gRPC has its own network threads
constexpr int kPutThreads = 4;    // wait for S3
constexpr int kCheckThreads = 1;  // wait for checks of modules
constexpr int kStarters = 1;      // starts the processes of modules, which end with this thread
constexpr int kIdleModules = 16;  // such processes that wait for work, besides one for each compute thread

// Modules run in processes of this program.
ModuleUse MakeModuleUse(int threads, Executor* checks, Executor* starter) {
  const auto processes = std::make_shared<ModuleProcesses>("/proc/self/exe", threads + kIdleModules, starter);
  return {checks, [processes](const auto& file) { return processes->Take(ModuleProcesses::OwnName(file)).status(); }, processes};
}

std::string DeviceKind(const WorkerOptions& options) { return options.device == "cpu" ? "cpu" : "cuda"; }

DiskCache Disk(const WorkerOptions& options) {
  return options.cache_directory.empty() ? DiskCache{} : DiskCache{RealFileSystem(), options.cache_directory};
}

// Free memory of the GPU less a tenth, which data sets, prediction draws and libraries take. 0 if unknown.
int64_t GpuMemoryBytes(const std::string& device) {
  const absl::StatusOr<Device> parsed = ParseDevice(device);
  const absl::StatusOr<int64_t> free = parsed.ok() ? FreeDeviceBytes(*parsed) : parsed.status();
  if (free.ok()) return *free - *free / 10;
  Log(LogLevel::kWarning, "GPU memory unknown: chains are placed by slots alone",
      {{"device", device}, {"error", free.status().ToString()}});
  return 0;
}

DeviceReport Report(const WorkerOptions& options) {
  const bool cpu = options.device == "cpu";
  const int64_t usual = cpu ? HostMemoryBytes() : GpuMemoryBytes(options.device);
  const int64_t memory = options.memory_gib > 0 ? std::llround(options.memory_gib * 0x1p30) : usual;
  const int slots = options.chain_slots > 0 ? options.chain_slots : (cpu ? 16 : 64);
  return {options.device, memory, slots};
}

std::string Host(const WorkerOptions& options) { return options.host.empty() ? HostName() : options.host; }

// Serves the metrics and returns the address for Prometheus, "" for none. 0.0.0.0 and [::] become this host's name.
absl::StatusOr<std::string> ServeMetrics(const WorkerOptions& options, MetricsRegistry* metrics) {
  if (options.metrics_port == 0) return "";
  const CertificateFiles files{{"metrics", options.metrics_tls.certificate},
                               {"worker", options.tls.certificate},
                               {"server_ca", options.tls.authorities}};
  metrics->AtScrape([files] { return std::vector{CertificateExpiry(files)}; });
  const std::string& host = options.metrics_listen;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string bound,
                              metrics->Serve(absl::StrCat(host, ":", std::max(options.metrics_port, 0)),
                                             options.metrics_token, options.metrics_tls));
  CHAINFLEET_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(bound));
  return address.is_any_host() ? absl::StrCat(HostName(), ":", address.port) : bound;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Create(const WorkerOptions& options) {
  CHAINFLEET_RETURN_IF_ERROR(InitializeDevice(options.device, options.threads));
  std::unique_ptr<Worker> worker(new Worker(options));
  CHAINFLEET_RETURN_IF_ERROR(worker->metrics_address_.status());
  worker->Listen();
  options.metrics_token.ReadOn(worker->pool_.get());
  if (options.metrics_port != 0) worker->WatchGpus(options);
  return worker;
}

Worker::Worker(const WorkerOptions& options)
    : metrics_("worker"),
      counters_(&metrics_, DeviceKind(options)),
      metrics_address_(ServeMetrics(options, &metrics_)),
      id_(options.id.empty() ? absl::StrCat(HostName(), "-", getpid()) : options.id),
      credentials_(options.token, id_, &clock_, options.token_printed),
      incarnation_(credentials_.incarnation()),
      jitter_{RandomBits()},
      pool_(std::make_unique<ThreadPool>(kIoThreads)),
      puts_(std::make_unique<ThreadPool>(kPutThreads)),
      checks_(std::make_unique<ThreadPool>(kCheckThreads)),
      starter_(std::make_unique<ThreadPool>(kStarters)),
      s3_(options.ca_bundle),
      client_({options.server, id_, incarnation_, options.tls, &credentials_}),
      uploads_(
          &client_,
          [this](const ChainId& chain, int64_t lease_epoch, const BlobRef& ref, Done<SignedUpload> done) {
            client_.SignUpload(chain, lease_epoch, ref, std::move(done));
          },
          &s3_, puts_.get()),
      held_(&clock_, options.device == "cpu" ? limits::kHungCpuStepFloor : limits::kHungGpuStepFloor),
      fetcher_(&client_, pool_.get(), Fold(jitter_, 0), Disk(options)),
      inputs_(&fetcher_, pool_.get(), MakeModuleUse(options.threads, checks_.get(), starter_.get())),
      draws_(&fetcher_, pool_.get(), options.draw_cache_mib * limits::kMiB),
      loader_(&fetcher_, &inputs_, pool_.get()),
      uploader_({{id_, Host(options), DeviceKind(options), kNumericsVersion},
                 incarnation_,
                 limits::kUploadQueueBytes,
                 Fold(jitter_, 1)},
                &uploads_, &held_, pool_.get(), this),
      shards_([device = options.device, stacks = MakeStackCache(options.device).value_or(nullptr)](
                  auto plan, auto module) { return Predictor::Create(std::move(plan), device, module, stacks); },
              &draws_, &inputs_, pool_.get(), &clock_, this),
      device_(
          {options.serve_share},
          [device = options.device](auto plan, const JobInputs& inputs) {
            return ChainBatch::Create(std::move(plan), inputs.dataset, device, inputs.module);
          },
          &held_, &uploader_, &loader_, &shards_, this, &clock_),
      session_({id_, incarnation_, Host(options), metrics_address_.value_or(""), {Report(options)}, Fold(jitter_, 2)},
               &client_, &held_, &uploader_, pool_.get(), &clock_),
      stream_({options.server, id_, incarnation_, Fold(jitter_, 3), options.tls, &credentials_}, &shards_,
              pool_.get()) {}

void Worker::Listen() {
  held_.SetListeners([this] { Wake(); }, [this] { session_.Wake(); });
  uploader_.SetRoomListener([this] { Wake(); });
  shards_.SetListener([this] { Wake(); });
  device_.SetListener([this] { Wake(); });
  metrics_.BeforeScrape([this] {
    counters_.SetChains(held_.num_chains());
    counters_.SetUploadQueue(uploader_.queued_bytes());
    counters_.ShowDrawCache({draws_.counts().hits, draws_.counts().misses, draws_.held_bytes()});
  });
}

// A missing library is not an error: the worker logs why these gauges are absent.
void Worker::WatchGpus(const WorkerOptions& options) {
  int index = 0;
  const bool on_gpu = absl::SimpleAtoi(options.device.substr(options.device.find(':') + 1), &index);
  if (options.nvml.empty() && !on_gpu) return;
  const auto without = [this](const std::string& why) {
    Log(LogLevel::kWarning, "no metrics of GPUs", {{"worker", id_}, {"error", why}});
  };
  const std::string visible = EnvironmentVariable("CUDA_VISIBLE_DEVICES");
  const std::optional<int> device = on_gpu ? DriverIndex(index, visible) : std::nullopt;
  if (on_gpu && !device) return without("CUDA_VISIBLE_DEVICES=" + visible + " names no number for " + options.device);
  auto probe = GpuProbe::Open(options.nvml.empty() ? kNvmlLibrary : options.nvml, device);
  if (!probe.ok()) return without(std::string(probe.status().message()));
  gpus_ = *std::move(probe);
  metrics_.AtScrape([this] { return GpuGauges(gpus_->Read()); });
}

Worker::~Worker() {
  metrics_.StopServing();
  // Stop all callers first: the device, the network, the pool. Then the parts may be destroyed in any order.
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    work_.SignalAll();
  }
  if (compute_.joinable()) compute_.join();
  stream_.Stop();
  client_.Stop();
  s3_.Stop();
  checks_->Stop();
  starter_->Stop();
  puts_->Stop();
  pool_->Stop();
}

void Worker::Start(std::function<void()> on_change) {
  session_.SetListener(std::move(on_change));
  compute_ = std::thread([this] { Compute(); });
  session_.Start();
  stream_.Start();
}

void Worker::Wake() {
  MutexLock lock(&mutex_);
  has_work_ = true;
  work_.Signal();
}

void Worker::Compute() {
  SetTimeSlice(absl::Milliseconds(100));  // answers of gRPC threads and of a server on this host go first
  for (;;) {
    const bool worked = device_.RunOnce();
    MutexLock lock(&mutex_);
    if (!worked && !has_work_ && !stopping_) work_.WaitWithTimeout(&mutex_, device_.IdleWait());
    if (stopping_) return;
    has_work_ = false;
  }
}

}  // namespace chainfleet
