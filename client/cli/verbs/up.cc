#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/exit_code.h"
#include "client/cli/local_fleet.h"
#include "client/cli/verbs/verbs.h"
#include "core/base/file_system.h"
#include "core/base/host_port.h"
#include "core/base/random_bits.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(60);
constexpr int kFirstWorkerMetricsPort = 7410;
constexpr absl::Duration kCallTimeout = absl::Seconds(5);

struct UpOptions {
  std::string data_folder = DefaultDataFolder();
  std::string listen = kDefaultAddress;
  bool listen_given = false;
  std::string metrics_listen, http_listen;
  std::vector<std::string> devices = {"cpu"};
  int workers = -1;  // two on the CPU, else one for each device
  int threads = 0;   // for each worker; 0: cores / workers
  absl::Duration lease = absl::ZeroDuration();
  bool allow_modules = false, insecure = false;
};

// The default metrics ports are used with the default port only, because several fleets on one machine must not
// collide.
bool IsDefaultPort(const UpOptions& options) { return absl::EndsWith(options.listen, ":7400"); }

// The address at which clients on this machine reach a server that listens at `listen`, once its port is known.
std::string AddressOf(const std::string& listen, int port) {
  const HostPort address = ParseHostPort(listen).value_or(HostPort{});
  return absl::StrCat(address.is_any_host() ? "127.0.0.1" : address.host, ":", port);
}

absl::Duration StartTimeout(const Invocation& run) {
  return run.timeout == absl::InfiniteDuration() ? kStartTimeout : run.timeout;
}

bool AnyRuns(const std::vector<Daemon>& workers) {
  return std::any_of(workers.begin(), workers.end(), [](const Daemon& worker) { return worker.Pid().has_value(); });
}

// A server or worker of an earlier `up` runs: the server is where that one's --listen said.
void KeepListen(const LocalFleet& fleet, bool server_is_up, UpOptions* options) {
  if (options->listen_given || !(server_is_up || AnyRuns(fleet.KnownWorkers()))) return;
  const absl::StatusOr<std::string> listen = RealFileSystem()->Read(fleet.listen_path());
  if (listen.ok()) options->listen = *listen;
}

// Running workers keep dialling the address that they were started with. A restarted server therefore takes its old
// port, unless another port number is given.
void KeepPort(const LocalFleet& fleet, UpOptions* options) {
  const absl::StatusOr<int> port = fleet.Port("grpc");
  const bool asked_by_number = options->listen_given && !absl::EndsWith(options->listen, ":0");
  if (!port.ok() || asked_by_number || !AnyRuns(fleet.KnownWorkers())) return;
  options->listen = absl::StrCat(ParseHostPort(options->listen).value_or(HostPort{}).host, ":", *port);
}

// Prints the last log lines of a daemon that should be running, and returns them as an error.
absl::Status Ended(const Invocation& run, const Daemon& daemon) {
  const std::vector<std::string> lines = daemon.LogTail();
  for (const std::string& line : lines) std::cerr << daemon.name() << ": " << line << "\n";
  return absl::FailedPreconditionError(
      absl::StrCat(daemon.name(), " ended", daemon.HowItEnded(kCallTimeout, &run.clock), ": ",
                   lines.empty() ? "it said nothing" : lines.back(), "; its log is ", daemon.log_path()));
}

std::string RemedyIn(const LocalFleet& fleet) {
  return absl::StrCat("`chainfleet down --data-dir ", fleet.data_folder(), "`, then up again");
}

// The options of the server that the user gave, with their values. Flags have the value "".
std::vector<std::pair<std::string, std::string>> GivenForServer(const UpOptions& options) {
  std::vector<std::pair<std::string, std::string>> given;
  if (options.listen_given) given.emplace_back("--listen", options.listen);
  if (!options.metrics_listen.empty()) given.emplace_back("--metrics-listen", options.metrics_listen);
  if (!options.http_listen.empty()) given.emplace_back("--http-listen", options.http_listen);
  if (options.lease > absl::ZeroDuration()) given.emplace_back("--lease", absl::FormatDuration(options.lease));
  if (options.allow_modules) given.emplace_back("--allow-modules", "");
  if (options.insecure) given.emplace_back("--insecure", "");
  return given;
}

// The value that an option had at the start of the server; nullopt if the option was not given.
std::optional<std::string> ValueAtStart(const std::vector<std::string>& arguments, const std::string& option) {
  const auto at = std::ranges::find(arguments, option);
  if (at == arguments.end()) return std::nullopt;
  return at + 1 == arguments.end() || absl::StartsWith(*(at + 1), "--") ? "" : *(at + 1);
}

// True if a server that was started with `--listen running` is where `--listen asked` wants it. Port 0 takes any port.
bool ListensAt(const LocalFleet& fleet, const std::string& running, const std::string& asked) {
  const HostPort is = ParseHostPort(running).value_or(HostPort{}), wanted = ParseHostPort(asked).value_or(HostPort{});
  const auto name = [](const HostPort& at) -> std::string { return at.host == "localhost" ? "127.0.0.1" : at.host; };
  const bool host = is.is_any_host() || name(is) == name(wanted);
  return host && (wanted.port == 0 || wanted.port == is.port || wanted.port == fleet.Port("grpc").value_or(0));
}

// FAILED_PRECONDITION: the running server was started with other options than the user gives now.
absl::Status CheckRunsAsAsked(const UpOptions& options, const LocalFleet& fleet) {
  const absl::StatusOr<std::string> text = RealFileSystem()->Read(fleet.arguments_path());
  if (!text.ok()) return absl::OkStatus();  // an older release started the server
  const std::vector<std::string> arguments = absl::StrSplit(*text, '\n');
  std::vector<std::string> others;
  for (const auto& [option, value] : GivenForServer(options)) {
    const std::optional<std::string> running = ValueAtStart(arguments, option);
    if (running == value || (option == "--listen" && running && ListensAt(fleet, *running, value))) continue;
    others.push_back(absl::StrCat(running ? "with " : "without ", option, running && !running->empty() ? " " : "",
                                  running.value_or("")));
  }
  if (others.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the running server was started ", absl::StrJoin(others, " and "),
                                                    ": ", RemedyIn(fleet), ", or leave these options out"));
}

// FAILED_PRECONDITION: the user has a token, and the running server answers calls without one.
absl::Status CheckWantsToken(const Invocation& run, const std::string& address, const LocalFleet& fleet) {
  CHAINFLEET_ASSIGN_OR_RETURN(const auto token, TokenText(kCallerToken));
  if (!token || token->empty()) return absl::OkStatus();
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run.ConnectTo(address, kCallTimeout, nullptr, /*with_token=*/false));
  if (!client.GetServerInfo().ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the running server takes calls without a token: ", RemedyIn(fleet)));
}

absl::Status StartServer(const UpOptions& options, const LocalFleet& fleet) {
  std::error_code ignored;
  std::filesystem::remove(fleet.ports_path(), ignored);  // from an earlier run
  CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->WriteSynced(fleet.listen_path(), options.listen));
  std::vector<std::string> arguments = {"--data-dir",   fleet.data_folder(), "--listen",
                                        options.listen, "--port-file",       fleet.ports_path()};
  std::string metrics = options.metrics_listen;
  if (metrics.empty() && !IsDefaultPort(options)) metrics = "127.0.0.1:0";
  if (!metrics.empty()) arguments.insert(arguments.end(), {"--metrics-listen", metrics});
  std::string http = options.http_listen;
  if (http.empty() && !IsDefaultPort(options)) http = "127.0.0.1:0";
  if (!http.empty()) arguments.insert(arguments.end(), {"--http-listen", http});
  if (options.lease > absl::ZeroDuration()) {
    arguments.insert(arguments.end(), {"--lease", absl::FormatDuration(options.lease)});
  }
  if (options.allow_modules) arguments.push_back("--allow-modules");
  if (options.insecure) arguments.push_back("--insecure");
  CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->WriteSynced(fleet.arguments_path(), absl::StrJoin(arguments, "\n")));
  return fleet.server().Start(arguments);
}

// True if the call will fail again, whatever the server does.
bool IsRefusal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
}

// Waits until the server answers; returns its address.
absl::StatusOr<std::string> AwaitServer(const Invocation& run, const UpOptions& options, const LocalFleet& fleet) {
  std::string address;
  bool ended = false;
  absl::Status last;
  const bool answered = WaitUntil(&run.clock, StartTimeout(run), [&] {
    ended = !fleet.server().Pid();
    if (ended) return true;
    const auto port = fleet.Port("grpc");
    last = port.status();
    if (!port.ok()) return false;
    address = AddressOf(options.listen, *port);
    auto client = run.ConnectTo(address, kCallTimeout);
    last = client.ok() ? client->GetServerInfo().status() : client.status();
    return last.ok() || !client.ok() || IsRefusal(last);
  });
  if (ended) return Ended(run, fleet.server());
  if (!answered) {
    return absl::DeadlineExceededError(absl::StrCat("the server does not answer; its log is ",
                                                    fleet.server().log_path(), "; the last error: ", last.message()));
  }
  if (IsRefusal(last)) return Annotate(last, "the server runs and refuses this program's token");
  CHAINFLEET_RETURN_IF_ERROR(last);
  return address;
}

absl::Status StartWorker(const UpOptions& options, int index, const std::string& address, const LocalFleet& fleet) {
  const Daemon worker = fleet.worker(index);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int threads = options.threads > 0 ? options.threads : std::max(1, cores / std::max(1, options.workers));
  const int metrics_port = IsDefaultPort(options) ? kFirstWorkerMetricsPort + index : 0;  // 0: off
  const std::string& device = options.devices[static_cast<size_t>(index) % options.devices.size()];
  return worker.Start({"--server", address, "--id", worker.name(), "--device", device, "--threads",
                       absl::StrCat(threads), "--cache-dir",
                       absl::StrCat(fleet.data_folder(), "/cache/", worker.name()), "--metrics-port",
                       absl::StrCat(metrics_port)});
}

// Waits until each of `workers` can take chains and shards.
absl::Status AwaitWorkers(const Invocation& run, const LocalFleet& fleet, const std::vector<Daemon>& workers,
                          const std::string& address) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run.ConnectTo(address, kCallTimeout));
  std::optional<Daemon> ended;
  absl::Status last;
  const bool up = WaitUntil(&run.clock, StartTimeout(run), [&] {
    for (const Daemon& worker : workers) {
      if (!worker.Pid()) ended.emplace(worker);
    }
    if (ended) return true;
    const auto listed = client.ListWorkers();
    last = listed.status();
    if (IsRefusal(last)) return true;
    return listed.ok() && std::all_of(workers.begin(), workers.end(), [&](const Daemon& worker) {
             return std::any_of(listed->begin(), listed->end(),
                                [&](const v1::Worker& w) { return w.id() == worker.name() && w.serving(); });
           });
  });
  if (ended) return Ended(run, *ended);
  if (IsRefusal(last)) return last;
  if (!up)
    return absl::DeadlineExceededError(
        absl::StrCat("not all workers have reached the server; their logs are next to ", fleet.server().log_path()));
  return absl::OkStatus();
}

// A server that requires tokens from callers requires a separate one from workers. Unless the environment has one, the
// fleet keeps its own in a file, because its workers may outlive the server.
absl::Status GiveWorkersAToken(const LocalFleet& fleet) {
  CHAINFLEET_ASSIGN_OR_RETURN(const auto callers, TokenText(kCallerToken));
  CHAINFLEET_ASSIGN_OR_RETURN(const auto workers, TokenText(kWorkerToken));
  if (!callers || workers) return absl::OkStatus();
  const std::string path = fleet.run_folder() + "/worker-token";
  if (!RealFileSystem()->SizeBytes(path).ok()) {
    const std::string token =
        absl::StrCat(absl::Hex(RandomBits(), absl::kZeroPad16), absl::Hex(RandomBits(), absl::kZeroPad16));
    CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->WriteSynced(path, token));
  }
  setenv("CHAINFLEET_WORKER_TOKEN_FILE", path.c_str(), 1);
  return absl::OkStatus();
}

absl::Status Up(Invocation* run, UpOptions options) {
  umask(S_IRWXG | S_IRWXO);  // other users must not read logs and tokens
  if (options.workers < 0) options.workers = options.devices[0] == "cpu" ? 2 : static_cast<int>(options.devices.size());
  CHAINFLEET_ASSIGN_OR_RETURN(const LocalFleet fleet, LocalFleet::In(options.data_folder));
  CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->CreateFolders(fleet.run_folder()));
  CHAINFLEET_ASSIGN_OR_RETURN(const auto lock, FileLock::Acquire(fleet.run_folder() + "/lock"));
  CHAINFLEET_RETURN_IF_ERROR(GiveWorkersAToken(fleet));
  const bool server_was_up = fleet.server().Pid().has_value();
  if (server_was_up) CHAINFLEET_RETURN_IF_ERROR(CheckRunsAsAsked(options, fleet));
  KeepListen(fleet, server_was_up, &options);
  if (!server_was_up) {
    KeepPort(fleet, &options);
    CHAINFLEET_RETURN_IF_ERROR(StartServer(options, fleet));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string address, AwaitServer(*run, options, fleet));
  if (server_was_up) CHAINFLEET_RETURN_IF_ERROR(CheckWantsToken(*run, address, fleet));

  std::vector<Daemon> workers;
  int started = 0;
  for (int i = 0; i < options.workers; ++i) {
    workers.push_back(fleet.worker(i));
    if (workers.back().Pid()) continue;
    if (server_was_up && workers.back().HasEnded()) {
      std::cerr << workers.back().name() << " had ended and starts again; its log is " << workers.back().log_path()
                << "\n";
    }
    CHAINFLEET_RETURN_IF_ERROR(StartWorker(options, i, address, fleet));
    ++started;
  }
  CHAINFLEET_RETURN_IF_ERROR(AwaitWorkers(*run, fleet, workers, address));
  const std::vector<Daemon> known = fleet.KnownWorkers();
  const auto running = std::ranges::count_if(known, [](const Daemon& worker) { return worker.Pid().has_value(); });
  std::cout << (server_was_up && started == 0 ? "already up" : "up") << ": server " << address << ", " << running
            << (running == 1 ? " worker" : " workers") << ", data and logs in " << fleet.data_folder() << "\n";
  if (address != kDefaultAddress) std::cerr << "export CHAINFLEET_ADDRESS=" << address << "\n";
  if (const int http = fleet.Port("http").value_or(0); http > 0) {
    std::cerr << "HTTP: http://" << AddressOf(options.http_listen.empty() ? "127.0.0.1:0" : options.http_listen, http)
              << "\n";
  }
  std::cerr << "stop: chainfleet down --data-dir " << fleet.data_folder() << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddUp(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<UpOptions>();
  CLI::App* verb = AddVerb(program, run, "up", "Start a server and workers on this machine; running ones stay",
                           "  chainfleet up\n"
                           "  chainfleet up --device cuda:0,cuda:1\n"
                           "  chainfleet up --data-dir /tmp/try --listen 127.0.0.1:0 --workers 1 --threads 2",
                           [=] { return Up(run, *options); });
  verb->add_option("--data-dir", options->data_folder,
                   "State, draws, logs and pid files [" + options->data_folder + "]")
      ->option_text("DIR");
  verb->add_option_function<std::string>(
          "--listen",
          [=](const std::string& listen) {
            options->listen = listen;
            options->listen_given = true;
          },
          "Address of the server; port 0 takes a free one [127.0.0.1:7400]")
      ->check([](const std::string& listen) { return std::string(ParseHostPort(listen).status().message()); })
      ->option_text("HOST:PORT");
  verb->add_option("--metrics-listen", options->metrics_listen, "Address of the server's metrics, or off")
      ->option_text("HOST:PORT");
  verb->add_option("--http-listen", options->http_listen, "Address of the server's HTTP port, or off")
      ->option_text("HOST:PORT");
  verb->add_option("--workers", options->workers, "Number of workers [2 on cpu, else one for each device]")
      ->check(CLI::Range(0, 256))
      ->option_text("N");
  verb->add_option("--threads", options->threads, "Threads of each worker [cores / workers]")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  verb->add_option("--device", options->devices, "Device of the workers, or a comma list that they take in turn [cpu]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("DEVICE");
  verb->add_flag("--allow-modules", options->allow_modules,
                 "Accept TorchScript models, which are programs that the workers run");
  verb->add_flag("--insecure", options->insecure,
                 "Serve other hosts without tokens or without TLS: anyone who reaches the port or reads the "
                 "network has full access");
  AddDurationOption(verb, "--lease", &options->lease, "How long a chain stays with a silent worker [15s]");
  AddDurationOption(verb, "--timeout", &run->timeout, "Give up waiting after this long [60s]");
}

}  // namespace chainfleet
