// chainfleet-worker: parses its flags, runs a Worker until a signal, shuts down in order.
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/environment.h"
#include "core/base/lock_order_check.h"
#include "core/base/log.h"
#include "core/base/process_limits.h"
#include "core/base/reread.h"
#include "core/base/settings_file.h"
#include "core/base/version.h"
#include "worker/confinement.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/models/module_process.h"
#include "worker/numerics/models/module_service.h"
#include "worker/rpc/own_token.h"
#include "worker/worker.h"

namespace chainfleet {
namespace {

constexpr int kFailed = 1, kUsage = 2, kUnavailable = 5;

struct Flags {
  WorkerOptions worker{.threads = 0};
  std::string log_level = "info";
};

// Replaces "auto" by the number that encodes it. Returns an error text for any other `text` that is not a port.
std::string PortOrAuto(std::string& text) {
  int port = 0;
  if (text == "auto") {
    text = absl::StrCat(WorkerOptions::kFreePort);
  } else if (!absl::SimpleAtoi(text, &port) || port < 0 || port > 65535) {
    return absl::StrCat(text, " is neither a port from 0 to 65535 nor auto");
  }
  return "";
}

// Returns the error of a device name, "" if it is valid. A later step checks that this host has the device.
std::string WrongDevice(const std::string& text) {
  const bool known = ParseDevice(text).ok() || IsGpuName(text);
  return known ? "" : absl::StrCat(text, " is no device: give cpu or cuda:N, or GPU-UUID or MIG-UUID of nvidia-smi -L");
}

void AddFlags(CLI::App* app, Flags* flags) {
  app->set_version_flag("--version", kVersion);
  WorkerOptions& worker = flags->worker;
  app->add_option("--server", worker.server,
                  "HOST:PORT of the coordinator, or a comma-separated list of coordinators, one of which leads")
      ->envname("CHAINFLEET_ADDRESS")
      ->capture_default_str();
  app->add_option("--ca-file", worker.tls.authorities,
                  "Connect over TLS: PEM certificates that sign the server's certificate; system: those of this host")
      ->envname("CHAINFLEET_CA_FILE");
  app->add_option("--cert-file", worker.tls.certificate, "Certificate of this worker, if the server requires one")
      ->envname("CHAINFLEET_CERT_FILE");
  app->add_option("--key-file", worker.tls.key, "Private key of --cert-file")->envname("CHAINFLEET_KEY_FILE");
  app->add_option("--device", worker.device, "cpu, cuda:N, or a GPU or MIG device by its UUID")
      ->check(WrongDevice)
      ->capture_default_str();
  app->add_option("--threads", worker.threads, "Compute threads on the CPU; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app->add_option("--chain-slots", worker.chain_slots, "Chains to hold at once; 0: 16 on a CPU, 64 on a GPU")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app->add_option(
         "--memory-gib", worker.memory_gib,
         "Device memory for chains; 0: all that this process may use on a CPU, 90 % of the free memory on a GPU")
      ->check(CLI::Range(0.0, 1048576.0, "FLOAT in [0 - 1048576]"))
      ->capture_default_str();
  app->add_option("--cache-dir", worker.cache_directory, "Keep data sets here between runs; empty: in memory only");
  app->add_option("--serve-share", worker.serve_share,
                  "Share of the device for predictions while chains run, and for evaluations")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  app->add_option(
         "--draw-cache-mib", worker.draw_cache_mib,
         "Memory for draws kept between predictions, at their stored size; least recently used draws are evicted first")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app->add_option("--metrics-port", worker.metrics_port,
                  "Port for Prometheus, or auto: a free one, for several workers on a host; 0: off")
      ->transform(CLI::Validator(PortOrAuto, "0 to 65535 or auto"))
      ->capture_default_str();
  app->add_option("--metrics-listen", worker.metrics_listen,
                  "Address of --metrics-port; 0.0.0.0 lets a Prometheus on another host connect")
      ->capture_default_str();
  app->add_option("--metrics-tls-cert", worker.metrics_tls.certificate,
                  "Serve metrics only over TLS, with this certificate (PEM, with its intermediate certificates)");
  app->add_option("--metrics-tls-key", worker.metrics_tls.key, "Private key of --metrics-tls-cert");
  app->add_option("--nvml", worker.nvml,
                  "NVML library for GPU metrics on --metrics-port; empty: libnvidia-ml.so.1, with --device cuda:N");
  app->add_option("--id", worker.id, "Name of this worker, unique in the fleet; empty: host name and process id");
  app->add_option("--host", worker.host,
                  "Name of the machine; chains are spread over machines; in a pod the node's name; empty: host name");
  const char* config = std::getenv("CHAINFLEET_CONFIG");
  app->set_config("--config", config == nullptr ? "" : config,
                  "Read these flags from a file of NAME = VALUE lines; also CHAINFLEET_CONFIG");
  app->allow_config_extras(CLI::config_extras_mode::error);
  app->add_option("--log-level", flags->log_level, "debug, info, warning or error")->capture_default_str();
  app->footer(
      "CHAINFLEET_WORKER_TOKEN or CHAINFLEET_WORKER_TOKEN_FILE, else what the command CHAINFLEET_WORKER_TOKEN_COMMAND\n"
      "prints, else CHAINFLEET_TOKEN or CHAINFLEET_TOKEN_FILE: the bearer token of a worker, if the server has any.\n"
      "CHAINFLEET_METRICS_TOKEN or CHAINFLEET_METRICS_TOKEN_FILE: readers of --metrics-port must send it.\n"
      "SIGTERM or Ctrl-C hands the chains back and exits; a second one exits at once.\n\n"
      "Examples:\n"
      "  chainfleet-worker --server 10.0.0.5:7400 --device cuda:0 --metrics-port 7410 --metrics-listen 0.0.0.0\n"
      "  chainfleet-worker --threads 2 --chain-slots 8 --cache-dir /var/cache/chainfleet\n\n"
      "Exit status: 0 all chains handed back, 1 failed, 2 usage, 5 server unreachable at the end.");
}

int Fail(const absl::Status& status, int exit_status = kFailed) {
  std::cerr << "chainfleet-worker: " << std::string(status.message()) << "\n";
  return exit_status;
}

// Blocked in every thread from the start, so that only WaitForSignal receives them. The process sends SIGUSR1 to
// itself.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);  // a closed terminal must not end the worker
  return signals;
}

// Returns the next signal's number, or 0 after `timeout`.
int WaitForSignal(const sigset_t& signals, absl::Duration timeout) {
  const timespec limit = absl::ToTimespec(std::max(timeout, absl::ZeroDuration()));
  return std::max(sigtimedwait(&signals, nullptr, &limit), 0);
}

// Runs until the worker is refused, or until a signal and the drain after it. Returns the exit status. Without a clean
// end the process exits at once, because a hanging step cannot be joined.
int RunUntilSignal(Worker* worker, const sigset_t& signals) {
  WorkerSession& session = worker->session();
  const SystemClock clock;
  absl::Duration deadline = absl::InfiniteDuration();
  for (;;) {
    if (!session.status().ok()) return Fail(session.status());
    if (session.drained()) return 0;
    if (session.stuck()) {
      Log(LogLevel::kError, "a step or prediction hangs: all chains handed back, exiting");
      std::_Exit(kFailed);
    }
    const absl::Duration left = deadline - clock.Monotonic();
    if (left <= absl::ZeroDuration()) {
      Log(LogLevel::kError, "chains could not be handed back in time");
      std::_Exit(session.connected() ? kFailed : kUnavailable);
    }
    const int received = WaitForSignal(signals, std::min(left, absl::Hours(1)));
    if (received != SIGTERM && received != SIGINT) continue;
    if (deadline < absl::InfiniteDuration()) std::_Exit(kFailed);
    Log(LogLevel::kInfo, "handing chains back; a second signal exits at once", {{"signal", received}});
    deadline = clock.Monotonic() + limits::kDrainDeadline;
    session.Drain();
  }
}

// Makes a GPU that is given by name the only one that CUDA shows to this process.
void ShowNamedGpu(WorkerOptions* options) {
  if (!IsGpuName(options->device)) return;
  setenv("CUDA_VISIBLE_DEVICES", options->device.c_str(), 1);
  options->device = "cuda:0";
}

int Run(const WorkerOptions& options) {
  const sigset_t signals = BlockSignals();
  RaiseDescriptorLimit();
  SetTimeSlice(absl::Microseconds(100));
  DisableLockOrderCheck();
  // Torch's large temporaries come and go on several threads: few arenas keep resident memory flat.
  mallopt(M_ARENA_MAX, 4);
  const auto worker = Worker::Create(options);
  if (!worker.ok()) return Fail(worker.status());
  AddToEveryLine({{"worker", (*worker)->id()}});
  Log(LogLevel::kInfo, "worker started",
      {{"server", options.server}, {"device", options.device}, {"threads", options.threads}});
  (*worker)->Start([] { kill(getpid(), SIGUSR1); });
  return RunUntilSignal(worker->get(), signals);
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
  if (argc == 2 && std::string(argv[1]) == kServeModule) return ServeModule(Confine);
  WaitWithoutSpinning(argv);
  ForbidCoreDumps();
  umask(S_IRWXG | S_IRWXO);                         // other users must not read cached data sets
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);  // gRPC's errors are reported as statuses
  CLI::App app(
      "The chainfleet worker: steps chains on one device, streams their draws to the server, serves predictions.");
  Flags flags;
  AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const std::string settings = app.get_config_ptr()->as<std::string>();
    return Fail(absl::InvalidArgumentError(WithLineOfSettings(settings, error.what())), kUsage);
  }
  if (const absl::Status together = CheckSettingsAreTogether(app.get_config_ptr()->as<std::string>()); !together.ok()) {
    return Fail(together, kUsage);
  }
  flags.worker.ca_bundle = EnvironmentVariable("AWS_CA_BUNDLE");
  absl::StatusOr<Reread<std::string>> token = Reread<std::string>::Open("token", OwnToken);
  if (!token.ok()) return Fail(token.status());
  flags.worker.token = *std::move(token);
  flags.worker.token_printed = TokenIsPrinted();
  absl::StatusOr<Reread<std::string>> metrics_token = OpenMetricsToken();
  if (!metrics_token.ok()) return Fail(metrics_token.status());
  flags.worker.metrics_token = *std::move(metrics_token);
  flags.worker.tls.authorities = AuthoritiesFile(flags.worker.tls.authorities);
  if (const absl::Status tls = CheckTlsFiles(flags.worker.tls); !tls.ok()) return Fail(tls);
  const absl::Status metrics_tls = Annotate(CheckTlsFiles(flags.worker.metrics_tls), "TLS of metrics");
  if (!metrics_tls.ok()) return Fail(metrics_tls);
  if (flags.worker.threads == 0) {
    flags.worker.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  ShowNamedGpu(&flags.worker);
  InitLog("chainfleet-worker", flags.log_level);
  return Run(flags.worker);
}

}  // namespace
}  // namespace chainfleet

int main(int argc, char** argv) { return chainfleet::Main(argc, argv); }
