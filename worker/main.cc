// chainfleet-worker: parses its flags, puts the worker together, drives it from threads until a signal, ends in order.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/environment.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "core/metrics/metrics.h"
#include "worker/rpc/coordinator_client.h"
#include "worker/rpc/shard_predict_stream.h"
#include "worker/runtime/device_loop.h"
#include "worker/runtime/worker_session.h"
#include "worker/telemetry/worker_metrics.h"

namespace chainfleet {
namespace {

constexpr int kFailed = 1, kUsage = 2, kUnavailable = 5;
constexpr int kIoThreads = 2;  // encode, hash, decode, disk; the network has gRPC's own

struct Flags {
  std::string server = "127.0.0.1:7400", device = "cpu", id, cache_dir, log_level = "info";
  int threads = 0, chain_slots = 0, metrics_port = 0;
  double serve_share = 0.5;
};

void AddFlags(CLI::App* app, Flags* flags) {
  app->add_option("--server", flags->server, "HOST:PORT of the coordinator")
      ->envname("CHAINFLEET_ADDRESS")
      ->capture_default_str();
  app->add_option("--device", flags->device, "cpu or cuda:N")->capture_default_str();
  app->add_option("--threads", flags->threads, "Compute threads on the CPU; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app->add_option("--chain-slots", flags->chain_slots, "Chains to hold at once; 0: 16 on a CPU, 64 on a GPU")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app->add_option("--cache-dir", flags->cache_dir, "Keep data sets here between runs; empty: in memory only");
  app->add_option("--serve-share", flags->serve_share, "Share of the device for predictions while chains run")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  app->add_option("--metrics-port", flags->metrics_port, "Port for Prometheus; 0: off")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app->add_option("--id", flags->id, "Name of this worker, unique in the fleet; empty: host name and process id");
  const char* config = std::getenv("CHAINFLEET_CONFIG");
  app->set_config("--config", config == nullptr ? "" : config,
                  "Read these flags from a file of NAME = VALUE lines; also CHAINFLEET_CONFIG");
  app->allow_config_extras(CLI::config_extras_mode::error);
  app->add_option("--log-level", flags->log_level, "debug, info, warning or error")->capture_default_str();
  app->footer(
      "CHAINFLEET_TOKEN or CHAINFLEET_TOKEN_FILE: the bearer token, where the server wants one.\n"
      "SIGTERM or Ctrl-C hands the chains back and ends; a second one ends at once.\n\n"
      "Examples:\n"
      "  chainfleet-worker --server 10.0.0.5:7400 --device cuda:0 --metrics-port 7410\n"
      "  chainfleet-worker --threads 2 --chain-slots 8 --cache-dir /var/cache/chainfleet\n\n"
      "Exit status: 0 ended after handing everything back, 1 failed, 2 usage, 5 ended with the server out of reach.");
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

uint64_t RandomBits() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

// Everything of this process but its threads and signals.
class Worker final : public RuntimeObserver {
 public:
  Worker(const Flags& flags, const std::string& token)
      : metrics_("worker"),
        counters_(&metrics_, DeviceKind(flags)),
        id_(flags.id.empty() ? absl::StrCat(HostName(), "-", getpid()) : flags.id),
        incarnation_(absl::StrCat(absl::Hex(RandomBits(), absl::kZeroPad16))),
        jitter_{RandomBits()},
        pool_(std::make_unique<ThreadPool>(kIoThreads)),
        client_({flags.server, token, HostName(), DeviceKind(flags), kNumericsVersion}),
        held_(&clock_),
        fetcher_(&client_, pool_.get(), Fold(jitter_, 0), Disk(flags)),
        datasets_(&fetcher_, pool_.get()),
        draws_(&fetcher_, pool_.get()),
        loader_(&fetcher_, &datasets_, pool_.get()),
        uploader_({id_, incarnation_, limits::kUploadQueueBytes, Fold(jitter_, 1)}, &client_, &held_, pool_.get(),
                  this),
        shards_([device = flags.device](auto plan) { return Predictor::Create(std::move(plan), device); }, &draws_,
                &datasets_, pool_.get(), &clock_, this),
        device_(
            {flags.serve_share},
            [device = flags.device](auto plan, auto dataset) {
              return ChainBatch::Create(std::move(plan), std::move(dataset), device);
            },
            &held_, &uploader_, &loader_, &shards_, this, &clock_),
        session_({id_, incarnation_, HostName(), {Report(flags)}, Fold(jitter_, 2)}, &client_, &held_, &uploader_,
                 pool_.get(), &clock_),
        stream_({flags.server, token, id_, incarnation_, Fold(jitter_, 3)}, &shards_, pool_.get()) {
    held_.SetListeners([this] { Wake(); }, [this] { session_.Wake(); });
    uploader_.SetRoomListener([this] { Wake(); });
    shards_.SetListener([this] { Wake(); });
    device_.SetListener([this] { Wake(); });
    metrics_.BeforeScrape([this] {
      counters_.SetChains(held_.num_chains());
      counters_.SetUploadQueue(uploader_.queued_bytes());
    });
  }

  ~Worker() override {
    // What calls comes to rest first: the device, the network, the pool. Then the parts may go in any order.
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      work_.SignalAll();
    }
    if (compute_.joinable()) compute_.join();
    stream_.Stop();
    client_.Stop();
    pool_.reset();
  }

  // `on_change`, from any thread: the session's status() or drained() may be another.
  void Start(std::function<void()> on_change) {
    session_.SetListener(std::move(on_change));
    compute_ = std::thread([this] { Compute(); });
    session_.Start();
    stream_.Start();
  }

  absl::Status ServeMetrics(int port) { return metrics_.Serve(absl::StrCat("0.0.0.0:", port)).status(); }
  WorkerSession& session() { return session_; }
  const std::string& id() const { return id_; }

  void OnStep(int rows, absl::Duration took) override { counters_.AddStep(rows, took); }
  void OnCommit(int64_t draws, int64_t bytes) override { counters_.AddCommit(draws, bytes); }
  void OnShardUnit(absl::Duration took) override { counters_.AddShardUnit(took); }

 private:
  static std::string DeviceKind(const Flags& flags) { return flags.device == "cpu" ? "cpu" : "cuda"; }
  static DiskCache Disk(const Flags& flags) {
    return flags.cache_dir.empty() ? DiskCache{} : DiskCache{RealFileSystem(), flags.cache_dir};
  }
  static DeviceReport Report(const Flags& flags) {
    const bool cpu = flags.device == "cpu";
    const int64_t memory = cpu ? int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE) : 0;
    const int slots = flags.chain_slots > 0 ? flags.chain_slots : (cpu ? 16 : 64);
    return {flags.device, memory, slots};
  }

  void Wake() {
    MutexLock lock(&mutex_);
    has_work_ = true;
    work_.Signal();
  }

  void Compute() {
    for (;;) {
      const bool worked = device_.RunOnce();
      MutexLock lock(&mutex_);
      if (!worked && !has_work_ && !stopping_) work_.WaitWithTimeout(&mutex_, device_.IdleWait());
      if (stopping_) return;
      has_work_ = false;
    }
  }

  SystemClock clock_;
  MetricsRegistry metrics_;
  WorkerMetrics counters_;
  const std::string id_, incarnation_;
  const RngKey jitter_;
  std::unique_ptr<ThreadPool> pool_;
  CoordinatorClient client_;
  HeldChains held_;
  ObjectFetcher fetcher_;
  DatasetCache datasets_;
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

int Fail(const absl::Status& status) {
  std::cerr << "chainfleet-worker: " << std::string(status.message()) << "\n";
  return kFailed;
}

// Blocked in every thread from the start: only WaitForSignal sees them. SIGUSR1 is this process's word to itself.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

// The number of the next signal, or 0 when `timeout` has passed.
int WaitForSignal(const sigset_t& signals, absl::Duration timeout) {
  const timespec limit = absl::ToTimespec(std::max(timeout, absl::ZeroDuration()));
  return std::max(sigtimedwait(&signals, nullptr, &limit), 0);
}

// Until the worker is refused, or a signal and the drain that follows. Returns the exit status; without a clean end the
// process goes at once, since a step that hangs cannot be joined.
int RunUntilSignal(Worker* worker, const sigset_t& signals) {
  WorkerSession& session = worker->session();
  const SystemClock clock;
  absl::Duration deadline = absl::InfiniteDuration();
  for (;;) {
    if (!session.status().ok()) return Fail(session.status());
    if (session.drained()) return 0;
    const absl::Duration left = deadline - clock.Monotonic();
    if (left <= absl::ZeroDuration()) {
      Log(LogLevel::kError, "chains could not be handed back in time", {{"worker", worker->id()}});
      std::_Exit(session.connected() ? kFailed : kUnavailable);
    }
    const int received = WaitForSignal(signals, std::min(left, absl::Hours(1)));
    if (received != SIGTERM && received != SIGINT) continue;
    if (deadline < absl::InfiniteDuration()) std::_Exit(kFailed);
    Log(LogLevel::kInfo, "handing chains back; a second signal ends at once",
        {{"worker", worker->id()}, {"signal", received}});
    deadline = clock.Monotonic() + limits::kDrainDeadline;
    session.Drain();
  }
}

int Run(Flags flags) {
  const sigset_t signals = BlockSignals();
  // Torch's large temporaries come and go on several threads: few arenas keep resident memory flat.
  mallopt(M_ARENA_MAX, 4);
  if (flags.threads == 0) flags.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (const absl::Status status = InitializeDevice(flags.device, flags.threads); !status.ok()) return Fail(status);
  const absl::StatusOr<std::string> token = BearerToken();
  if (!token.ok()) return Fail(token.status());
  Worker worker(flags, *token);
  if (flags.metrics_port > 0) {
    if (const absl::Status status = worker.ServeMetrics(flags.metrics_port); !status.ok()) return Fail(status);
  }
  Log(LogLevel::kInfo, "worker started",
      {{"worker", worker.id()}, {"server", flags.server}, {"device", flags.device}, {"threads", flags.threads}});
  worker.Start([] { kill(getpid(), SIGUSR1); });
  return RunUntilSignal(&worker, signals);
}

// LibTorch's OpenMP threads spin between loops; on a host that others use as well this made a step 10 to 40 times
// slower (measured). The policy is read when the library is loaded, before main: set it and start over, once.
void WaitWithoutSpinning(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(self.c_str(), argv);  // on failure we go on as we are
}

int Main(int argc, char** argv) {
  WaitWithoutSpinning(argv);
  CLI::App app(
      "The chainfleet worker: steps chains on one device, streams their draws to the server, serves predictions.");
  Flags flags;
  AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  InitLog("chainfleet-worker", flags.log_level);
  return Run(flags);
}

}  // namespace
}  // namespace chainfleet

int main(int argc, char** argv) { return chainfleet::Main(argc, argv); }
