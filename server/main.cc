// chainfleet-server: parses its flags, runs the Server until a signal, shuts down in order.
#include <arpa/inet.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stop_token>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/command.h"
#include "core/base/environment.h"
#include "core/base/host_port.h"
#include "core/base/lock_order_check.h"
#include "core/base/log.h"
#include "core/base/process_limits.h"
#include "core/base/settings_file.h"
#include "core/base/trusted_proxies.h"
#include "core/base/version.h"
#include "core/store/state_store/database_password.h"
#include "server/rpc/services.h"
#include "server/secrets.h"
#include "server/serving.h"
#include "server/tenant_flags.h"

namespace chainfleet {
namespace {

constexpr int kFailed = 1, kUsage = 2;
constexpr int kLargeBufferBytes = 4 << 20;

constexpr char kFooter[] =
    "CHAINFLEET_TOKEN or CHAINFLEET_TOKEN_FILE: callers must send it as a bearer token. The file may have several "
    "lines TOKEN [TENANT] [admin|operator|writer|reader|predictor] [models], and TOKEN worker; an admin makes and "
    "revokes others with `chainfleet token` while the server runs. CHAINFLEET_WORKER_TOKEN or "
    "CHAINFLEET_WORKER_TOKEN_FILE: workers must send it. CHAINFLEET_METRICS_TOKEN or CHAINFLEET_METRICS_TOKEN_FILE: "
    "readers of metrics must send it. Files are read again when they change. Without --tls-cert (metrics: "
    "--metrics-tls-cert) tokens travel in clear.\n\n"
    "Examples:\n"
    "  CHAINFLEET_TOKEN_FILE=/etc/tokens chainfleet-server --data-dir /srv/chainfleet --listen 0.0.0.0:7400 \\\n"
    "      --tls-cert pki/server.crt --tls-key pki/server.key\n"
    "  chainfleet-server --data-dir /srv/chainfleet --dataset-root /data --dataset-root s3://my-bucket/data\n"
    "  chainfleet-server --data-dir /tmp/try --listen 127.0.0.1:0 --metrics-listen off --port-file /tmp/try.json";

struct Flags {
  SystemClock clock;
  ServerOptions server;
  std::stop_source ending;  // kills the commands that run when this process ends
  std::string state_password_command, blobs, draw_keys, draw_keys_command,
      lease = "15s", predict_max_delay = "0ms", longest_call = "30m", port_file, log_level = "info";
  std::vector<std::string> dataset_roots, oidc_rules;
  std::string share_half_life = "24h";
  std::string scale = "off", scale_script, scale_idle = "5m", scale_join = "5m";
  ScaleSettings scale_settings;
  bool restored = false, keep_objects = false, insecure = false;
};

void AddScaleFlags(CLI::App* app, Flags* flags) {
  app->add_option(
         "--scale", flags->scale,
         "slurm: request Slurm workers when chains wait and release idle ones; off: workers are started by others")
      ->check(CLI::IsMember({"off", "slurm"}))
      ->capture_default_str();
  app->add_option("--scale-script", flags->scale_script,
                  "Batch script that starts one worker, such as deploy/slurm/chainfleet-worker.sbatch");
  app->add_option("--scale-min", flags->scale_settings.min_workers, "Smallest number of workers, idle ones included")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  app->add_option("--scale-max", flags->scale_settings.max_workers, "Largest number of workers, queued ones included")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app->add_option("--scale-chains", flags->scale_settings.chains_per_worker, "Chains that one worker takes")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--scale-join", flags->scale_join, "Time within which the worker of a started cluster job must join")
      ->capture_default_str();
  app->add_option("--scale-idle", flags->scale_idle, "Time after which a worker without chains is drained")
      ->capture_default_str();
}

void AddPredictFlags(CLI::App* app, Flags* flags) {
  app->add_option("--predict-max-rows", flags->server.batches.max_rows, "Rows in one batch of predictions")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app->add_option("--predict-max-delay", flags->predict_max_delay,
                  "Time that a prediction waits for others to join its batch while workers are free")
      ->capture_default_str();
  app->add_option("--predict-max-waiting", flags->server.batches.max_waiting,
                  "Largest number of waiting predictions; further ones are refused")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--longest-call", flags->longest_call,
                  "Time limit of a prediction or evaluation; draws stay readable this long after they expire")
      ->capture_default_str();
}

void AddIdentityFlags(CLI::App* app, Flags* flags) {
  IdentityOptions& options = flags->server.identities;
  app->add_option("--oidc-issuer", options.issuer,
                  "https://... of an OpenID Connect issuer, whose JWTs callers may send as tokens");
  app->add_option("--oidc-audience", options.audience, "Name of this server in the aud of these JWTs");
  app->add_option("--oidc-keys", options.keys,
                  "File or https://... of the issuer's keys (JWKS); default: where its openid-configuration says");
  app->add_option("--oidc-ca", options.authorities,
                  "PEM certificates that sign the issuer's; default: those of this host");
  app->add_option(
         "--oidc-rule", flags->oidc_rules,
         "'CLAIM=VALUE -> [TENANT] [ROLE] [models]', repeatable: callers with that claim get these rights; the "
         "first match decides, without one callers are refused; TENANT may be {CLAIM}")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddAccessFlags(CLI::App* app, Flags* flags) {
  app->add_flag("--insecure", flags->insecure,
                "Serve other hosts without tokens or without TLS: anyone who reaches the port or reads the network has "
                "full access");
  app->add_option("--tls-cert", flags->server.tls.certificate,
                  "Serve gRPC and HTTP only over TLS, with this certificate (PEM, with its intermediate certificates)");
  app->add_option("--tls-key", flags->server.tls.key, "Private key of --tls-cert");
  app->add_option("--tls-client-ca", flags->server.tls.authorities,
                  "PEM certificates that sign those of clients and workers; each of these must then present one");
  app->add_option_function<std::vector<std::string>>(
         "--trusted-proxy",
         [proxies = &flags->server.access.proxies](const std::vector<std::string>& networks) {
           absl::StatusOr<TrustedProxies> read = TrustedProxies::Parse(networks);
           if (!read.ok()) throw CLI::ValidationError("--trusted-proxy", std::string(read.status().message()));
           *proxies = *std::move(read);
         },
         "Network of reverse proxies, such as 10.0.0.7/32, whose x-forwarded-for names the client, for bounds by "
         "address and the audit log; repeatable; default: none")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("ADDRESS/BITS");
  app->add_option("--worker-authority", flags->server.worker_authority,
                  "Folder of the authority that signs certificates of workers, made if missing; default: in the data "
                  "directory. Coordinators of one fleet share it");
  app->add_flag(
      "--allow-modules", flags->server.access.allow_modules,
      "Accept TorchScript models, which workers run as programs, from operators and admins of the fleet and tokens "
      "marked `models`");
  AddTenantFlags(app, &flags->server);
}

absl::Status ReadPredictFlags(Flags* flags) {
  BatchLimits& batches = flags->server.batches;
  if (!absl::ParseDuration(flags->predict_max_delay, &batches.max_delay) || batches.max_delay < absl::ZeroDuration() ||
      batches.max_delay > absl::Seconds(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--predict-max-delay ", flags->predict_max_delay, ": give 0 to 1s, like 2ms"));
  }
  absl::Duration& longest = flags->server.longest_call;
  if (!absl::ParseDuration(flags->longest_call, &longest) || longest < absl::Seconds(1) ||
      longest > limits::kEvaluateDeadline) {
    return absl::InvalidArgumentError(absl::StrCat("--longest-call ", flags->longest_call, ": give 1s to 30m"));
  }
  return absl::OkStatus();
}

// Returns an error text for an invalid listen address, or "".
std::string WrongAddress(const std::string& text) {
  return absl::StartsWith(text, "unix:") ? "" : std::string(ParseHostPort(text).status().message());
}

void AddStoreFlags(CLI::App* app, Flags* flags) {
  flags->server.data_directory = DefaultDataFolder();
  app->add_option("--data-dir", flags->server.data_directory,
                  "Folder of the state, and without --blobs of draws and data sets")
      ->capture_default_str();
  app->add_option("--state", flags->server.state,
                  "Database of jobs and commits: sqlite, in the data directory, or postgresql://USER@HOST/DATABASE")
      ->envname("CHAINFLEET_STATE")
      ->capture_default_str();
  app->add_option(
         "--state-password-command", flags->state_password_command,
         "Shell command that prints the password of --state postgresql://..., for a password that expires; runs before "
         "new connections, at most once a minute, or every 5 s while connections fail")
      ->envname("CHAINFLEET_STATE_PASSWORD_COMMAND");
  app->add_option("--advertise", flags->server.advertise,
                  "HOST:PORT at which others reach this coordinator; standbys announce it; default: --listen");
  app->add_option("--blobs", flags->blobs,
                  "Store of draws and data sets: s3://BUCKET/PREFIX with the usual AWS_ variables; default: the "
                  "data directory")
      ->envname("CHAINFLEET_BLOBS");
  app->add_option("--s3-public-endpoint", flags->server.s3_public_endpoint,
                  "http(s)://HOST[:PORT] at which workers reach S3, to upload draws directly; default: the server's "
                  "own endpoint; off: workers upload through the server")
      ->envname("CHAINFLEET_S3_PUBLIC_ENDPOINT");
  app->add_option(
         "--draw-keys", flags->draw_keys,
         "Encrypt draws, resume points and traces at rest. File of lines ID KEY [TENANT], where KEY is that of "
         "`openssl rand -hex 32`; the first line that fits a tenant encrypts, all lines decrypt")
      ->envname("CHAINFLEET_DRAW_KEYS");
  app->add_option("--draw-keys-command", flags->draw_keys_command,
                  "Shell command that prints these lines; it runs again every five minutes")
      ->envname("CHAINFLEET_DRAW_KEYS_COMMAND")
      ->excludes("--draw-keys");
  app->add_flag(
      "--renew-draws", flags->server.renew_draws,
      "Use once, after the keys changed: before serving, encrypt all draws and traces under the present ones");
  app->add_option(
         "--dataset-root", flags->dataset_roots,
         "FOLDER or s3://BUCKET/PREFIX, repeatable: this server reads data sets and networks below it that are "
         "put by file:// or s3://; default: none, all are uploaded")
      ->envname("CHAINFLEET_DATASET_ROOT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_flag(
      "--restored", flags->restored,
      "Use once, after a backup was restored: fence off everything done after the backup, and look for every object");
  app->add_option("--restore", flags->server.backup,
                  "Fill the empty stores of this server from the folder of `chainfleet backup`, and exit")
      ->option_text("FOLDER");
  app->add_flag("--objects-moved", flags->server.objects_moved,
                "Use once, after all objects were copied under the same names to their new place: --blobs, or the data "
                "directory");
  app->add_flag("--keep-objects", flags->keep_objects, "Do not delete objects while a backup runs");
}

void AddFlags(CLI::App* app, Flags* flags) {
  app->set_version_flag("--version", kVersion);
  AddStoreFlags(app, flags);
  app->add_option("--listen", flags->server.listen, "HOST:PORT for gRPC; port 0 takes a free one")
      ->check(WrongAddress)
      ->capture_default_str();
  AddAccessFlags(app, flags);
  AddIdentityFlags(app, flags);
  app->add_option("--metrics-listen", flags->server.metrics_listen, "HOST:PORT for Prometheus, or off")
      ->check([](const std::string& text) { return text == "off" ? "" : WrongAddress(text); })
      ->capture_default_str();
  app->add_option("--metrics-tls-cert", flags->server.metrics_tls.certificate,
                  "Serve metrics only over TLS, with this certificate (PEM, with its intermediate certificates)");
  app->add_option("--metrics-tls-key", flags->server.metrics_tls.key, "Private key of --metrics-tls-cert");
  app->add_option("--http-listen", flags->server.http_listen,
                  "HOST:PORT for HTTP: the Open Inference Protocol and the job API, or off; port 0 takes a free one")
      ->check([](const std::string& text) { return text == "off" ? "" : WrongAddress(text); })
      ->capture_default_str();
  app->add_option(
         "--lease", flags->lease,
         "Time after which a silent worker loses its chains; sync interval and grace period are a third of it each")
      ->capture_default_str();
  app->add_option("--port-file", flags->port_file,
                  "Write {\"grpc\": PORT, \"metrics\": PORT, \"http\": PORT} here once serving");
  app->add_option("--threads", flags->server.threads, "Threads for disk and bookkeeping; 0: by the number of cores")
      ->capture_default_str();
  app->add_option("--share-half-life", flags->share_half_life, "Time after which a tenant's past usage counts half")
      ->capture_default_str();
  AddPredictFlags(app, flags);
  AddScaleFlags(app, flags);
  const char* config = std::getenv("CHAINFLEET_CONFIG");
  app->set_config("--config", config == nullptr ? "" : config,
                  "Read these flags from a file of NAME = VALUE lines; also CHAINFLEET_CONFIG");
  app->allow_config_extras(CLI::config_extras_mode::error);
  app->add_option("--log-level", flags->log_level, "debug, info, warning or error")->capture_default_str();
  app->footer(kFooter);
}

bool IsPublicEndpoint(const std::string& text) {
  return text.empty() || text == "off" || absl::StartsWith(text, "http://") || absl::StartsWith(text, "https://");
}

// True if only this host reaches `listen`.
bool IsLoopback(const std::string& listen) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(listen);
  if (!parsed.ok()) return absl::StartsWith(listen, "unix:");
  in_addr address{};
  if (inet_pton(AF_INET, parsed->host.c_str(), &address) == 1) return ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
  return parsed->host == "localhost" || parsed->host == "[::1]";
}

int Fail(const absl::Status& status) {
  std::cerr << "chainfleet-server: " << std::string(status.message()) << "\n";
  return kFailed;
}

int WrongUsage(const std::string& what) {
  std::cerr << "chainfleet-server: " << what << "\n";
  return kUsage;
}

// Checks the settings of --scale slurm at the start, not when the first chain waits.
absl::StatusOr<SlurmOptions> ReadSlurmOptions(const Flags& flags) {
  const auto bad = [](const std::string& what) { return absl::InvalidArgumentError(what); };
  SlurmOptions slurm{.scale = flags.scale_settings, .script = flags.scale_script};
  const auto read = [](const char* flag, const std::string& text, absl::Duration* value) {
    if (absl::ParseDuration(text, value) && *value >= absl::Seconds(1)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", text, ": give a duration of at least 1s, like 5m"));
  };
  CHAINFLEET_RETURN_IF_ERROR(read("--scale-idle", flags.scale_idle, &slurm.scale.idle_after));
  CHAINFLEET_RETURN_IF_ERROR(read("--scale-join", flags.scale_join, &slurm.scale.join_within));
  if (slurm.scale.min_workers > slurm.scale.max_workers) {
    return bad(
        absl::StrCat("--scale-min ", slurm.scale.min_workers, " is above --scale-max ", slurm.scale.max_workers));
  }
  if (flags.scale_script.empty()) {
    return bad("--scale slurm needs --scale-script, such as deploy/slurm/chainfleet-worker.sbatch");
  }
  const absl::StatusOr<std::string> script = RealFileSystem()->ReadRange(flags.scale_script, 0, 2);
  if (!script.ok()) return bad(absl::StrCat("--scale-script: ", std::string(script.status().message())));
  if (*script != "#!") return bad(absl::StrCat("--scale-script ", flags.scale_script, " does not begin with #!"));
  for (const char* program : {"sbatch", "squeue", "scancel"}) {
    const absl::StatusOr<std::string> found = FindProgram(program, EnvironmentVariable("PATH"));
    if (!found.ok()) {
      return bad(absl::StrCat("--scale slurm: ", std::string(found.status().message()),
                              ": run the server where jobs can be submitted (Debian: slurm-client)"));
    }
  }
  slurm.address = EnvironmentVariable("CHAINFLEET_ADDRESS");
  if (slurm.address.empty()) slurm.address = flags.server.advertise;
  slurm.environment = OwnEnvironment();
  return slurm;
}

// INVALID_ARGUMENT if a root is malformed, else the error that prevents reading it. Found at the start, not at the
// first data set.
absl::Status ReadDatasetRoots(Flags* flags) {
  for (const std::string& root : flags->dataset_roots) {
    if (absl::StartsWith(root, "s3://")) {
      absl::StatusOr<S3Settings> s3 = ReadS3Settings(root, EnvironmentVariable, *RealFileSystem());
      if (!s3.ok()) return Annotate(s3.status(), "--dataset-root");
      flags->server.dataset_buckets.push_back(*std::move(s3));
    } else if (const absl::Status folder = DatasetRoots::CheckFolder(root); !folder.ok()) {
      return Annotate(folder, "--dataset-root");
    } else {
      flags->server.dataset_folders.push_back(root);
    }
  }
  return absl::OkStatus();
}

// True if nobody on the network can change the answer.
bool IsSecureUrl(const std::string& url) {
  if (!absl::StartsWith(url, "http://")) return absl::StartsWith(url, "https://");
  const std::string host = url.substr(7, url.find('/', 7) - 7);
  return IsLoopback(ParseHostPort(host).ok() ? host : host + ":80");
}

absl::Status ReadIdentityFlags(Flags* flags) {
  const auto bad = [](const std::string& what) { return absl::InvalidArgumentError(what); };
  IdentityOptions& options = flags->server.identities;
  const bool any = !options.audience.empty() || !options.keys.empty() || !flags->oidc_rules.empty();
  if (options.issuer.empty()) return any ? bad("JWTs need --oidc-issuer") : absl::OkStatus();
  if (!IsSecureUrl(options.issuer)) return bad("--oidc-issuer: give https://..., as in the iss of its tokens");
  if (options.audience.empty() || flags->oidc_rules.empty()) {
    return bad("--oidc-issuer needs --oidc-audience and --oidc-rule");
  }
  if (absl::StartsWith(options.keys, "http://") && !IsSecureUrl(options.keys)) {
    return bad("--oidc-keys: give a file or https://...");
  }
  for (const std::string& text : flags->oidc_rules) {
    absl::StatusOr<IdentityRule> rule = ParseIdentityRule(text);
    if (!rule.ok()) return Annotate(rule.status(), absl::StrCat("--oidc-rule ", text));
    options.rules.push_back(*std::move(rule));
  }
  return absl::OkStatus();
}

absl::Status ReadState(Flags* flags) {
  const std::string& state = flags->server.state;
  if (state != "sqlite" && !IsPostgres(state)) {
    // The text after a mistyped scheme may contain a password.
    const auto end = std::ranges::find_if_not(state, [](char c) { return absl::ascii_isalnum(c); });
    const std::string kind(state.begin(), end);
    return absl::InvalidArgumentError(absl::StrCat("--state ", kind, ": give sqlite or postgresql://..."));
  }
  const std::string& command = flags->state_password_command;
  if (command.empty()) return absl::OkStatus();
  if (!IsPostgres(state)) return absl::InvalidArgumentError("--state-password-command needs --state postgresql://...");
  flags->server.state_password =
      std::make_shared<DatabasePassword>(command, OwnEnvironment(), &flags->clock, flags->ending.get_token());
  return absl::OkStatus();
}

absl::StatusOr<Reread<ObjectKeys>> ReadDrawKeys(const Flags& flags) {
  CHAINFLEET_ASSIGN_OR_RETURN(Reread<ObjectKeys> keys, OpenDrawKeys(flags.draw_keys, flags.draw_keys_command,
                                                                    &flags.clock, flags.ending.get_token()));
  const bool wanted = flags.server.renew_draws || !flags.draw_keys.empty() || !flags.draw_keys_command.empty();
  if (wanted && keys.Current()->empty())
    return absl::InvalidArgumentError("--draw-keys or --draw-keys-command gives no key");
  return keys;
}

// The tokens of callers and workers. INVALID_ARGUMENT also if the server would be open to other hosts.
absl::StatusOr<Reread<TokenTable>> ReadTokens(const Flags& flags) {
  const bool has_issuer = !flags.server.identities.issuer.empty();
  CHAINFLEET_ASSIGN_OR_RETURN(Reread<TokenTable> tokens, OpenTokens(has_issuer));
  const bool is_http_open = flags.server.http_listen != "off" && !IsLoopback(flags.server.http_listen);
  const bool is_grpc_open = !IsLoopback(flags.server.listen);
  if (flags.insecure || (!is_grpc_open && !is_http_open)) return tokens;
  const std::string listen =
      is_grpc_open ? "--listen " + flags.server.listen : "--http-listen " + flags.server.http_listen;
  if (tokens.Current()->empty() && !has_issuer) {
    return absl::InvalidArgumentError(absl::StrCat(
        listen,
        " without a token lets every host that reaches the port read and change everything: set CHAINFLEET_TOKEN "
        "or CHAINFLEET_TOKEN_FILE, and CHAINFLEET_WORKER_TOKEN for workers, or say --insecure"));
  }
  if (!flags.server.tls.certificate.empty()) return tokens;
  return absl::InvalidArgumentError(absl::StrCat(listen,
                                                 " without TLS sends tokens, data and draws in clear: give --tls-cert "
                                                 "and --tls-key (`chainfleet pki` makes them), "
                                                 "or say --insecure"));
}

// Metrics show jobs and workers of all tenants. INVALID_ARGUMENT also if other hosts would read them without a token.
absl::StatusOr<Reread<std::string>> ReadMetricsToken(const Flags& flags) {
  CHAINFLEET_ASSIGN_OR_RETURN(Reread<std::string> token, OpenMetricsToken());
  const std::string& listen = flags.server.metrics_listen;
  if (!token.Current()->empty() || flags.insecure || listen == "off" || IsLoopback(listen)) return token;
  return absl::InvalidArgumentError(absl::StrCat(
      "--metrics-listen ", listen, " without a token shows every host the jobs and workers of all tenants: set ",
      kMetricsToken, " or ", kMetricsToken, "_FILE, or say --insecure"));
}

absl::Status CheckServerTls(const ServerOptions& options) {
  if (options.tls.certificate.empty() && !options.tls.authorities.empty()) {
    return absl::InvalidArgumentError("--tls-client-ca needs --tls-cert and --tls-key");
  }
  CHAINFLEET_RETURN_IF_ERROR(Annotate(CheckTlsFiles(options.metrics_tls), "TLS of metrics"));
  return Annotate(CheckTlsFiles(options.tls), "TLS");
}

// Warns the operator if the server is open.
void LogAccess(const TokenTable& tokens, bool has_issuer, const std::string& listen) {
  if (tokens.empty() && !has_issuer && !IsLoopback(listen)) {
    Log(LogLevel::kWarning, "no tokens: every host that reaches the port has full access", {{"listen", listen}});
  }
  const auto is_worker = [](const auto& entry) { return entry.second.may(kJoin); };
  if ((!tokens.empty() || has_issuer) && std::ranges::none_of(tokens, is_worker)) {
    Log(LogLevel::kWarning,
        "no worker's token: workers need CHAINFLEET_WORKER_TOKEN, or one of `chainfleet token create --role worker`");
  }
}

int Run(const Flags& flags) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, kBackupCame);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // inherited by every thread; only sigwait receives these signals
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);  // a closed terminal must not end the server
  LogAccess(*flags.server.tokens.Current(), !flags.server.identities.issuer.empty(), flags.server.listen);
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);  // gRPC's errors are reported as statuses
  RaiseDescriptorLimit();
  SetTimeSlice(absl::Microseconds(100));
  DisableLockOrderCheck();
  ThreadPool secrets(2);  // a command may take long
  absl::Cleanup end_commands = [&] { std::stop_source(flags.ending).request_stop(); };
  flags.server.tokens.ReadOn(&secrets);
  flags.server.metrics_token.ReadOn(&secrets);
  flags.server.draw_keys.ReadOn(&secrets);

  Serving serving(flags.server, flags.port_file, signals);
  if (!flags.server.backup.empty()) {
    const absl::Status restored = serving.Restore();
    if (!restored.ok()) return Fail(restored);
    std::cout << "restored: start the server as usual\n";
    return 0;
  }
  // Before the end of the server, which waits for a thread that runs a command.
  const absl::Status served = serving.Run([&] { std::move(end_commands).Invoke(); });
  return served.ok() ? 0 : Fail(served);
}

int Main(int argc, char** argv) {
  ForbidCoreDumps();
  umask(S_IRWXG | S_IRWXO);  // other users must not read state, draws and data sets
  // Return large buffers to the system at once. By default glibc raises the threshold whenever one is freed, and then
  // keeps requests and replies of up to 32 MiB in its arenas.
  mallopt(M_MMAP_THRESHOLD, kLargeBufferBytes);
  CLI::App app("The chainfleet coordinator: schedules chains, stores draws, serves predictions.");
  Flags flags;
  AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return WrongUsage(WithLineOfSettings(app.get_config_ptr()->as<std::string>(), error.what()));
  }
  if (const absl::Status together = CheckSettingsAreTogether(app.get_config_ptr()->as<std::string>()); !together.ok()) {
    return WrongUsage(std::string(together.message()));
  }
  if (!absl::ParseDuration(flags.lease, &flags.server.lease) || flags.server.lease < absl::Milliseconds(100)) {
    return WrongUsage(absl::StrCat("--lease ", flags.lease, ": give a duration of at least 100ms, like 15s"));
  }
  absl::Duration& half_life = flags.server.shares.half_life;
  if (!absl::ParseDuration(flags.share_half_life, &half_life) || half_life < absl::Seconds(1)) {
    return WrongUsage(
        absl::StrCat("--share-half-life ", flags.share_half_life, ": give a duration of at least 1s, like 24h"));
  }
  if (const absl::Status read = ReadPredictFlags(&flags); !read.ok()) return WrongUsage(std::string(read.message()));
  if (const absl::Status read = ReadState(&flags); !read.ok()) return WrongUsage(std::string(read.message()));
  if (!IsPublicEndpoint(flags.server.s3_public_endpoint)) {
    return WrongUsage(absl::StrCat("--s3-public-endpoint ", flags.server.s3_public_endpoint,
                                   ": give http://HOST[:PORT], https://HOST[:PORT] or off"));
  }
  const bool restores = !flags.server.backup.empty();
  flags.server.objects_moved |= restores;
  flags.server.opening = flags.restored || restores ? Opening::kRestored : Opening::kUsual;
  flags.server.collect_garbage = !flags.keep_objects;
  if (flags.scale == "slurm") {
    absl::StatusOr<SlurmOptions> slurm = ReadSlurmOptions(flags);
    if (!slurm.ok()) return WrongUsage(std::string(slurm.status().message()));
    flags.server.slurm = *std::move(slurm);
  }
  if (!flags.blobs.empty()) {
    absl::StatusOr<S3Settings> s3 = ReadS3Settings(flags.blobs, EnvironmentVariable, *RealFileSystem());
    if (!s3.ok()) return Fail(Annotate(s3.status(), "--blobs"));
    flags.server.s3 = *std::move(s3);
  }
  if (const absl::Status roots = ReadDatasetRoots(&flags); !roots.ok()) {
    return absl::IsInvalidArgument(roots) ? WrongUsage(std::string(roots.message())) : Fail(roots);
  }
  if (const absl::Status tls = CheckServerTls(flags.server); !tls.ok()) return Fail(tls);
  if (const absl::Status read = ReadIdentityFlags(&flags); !read.ok()) return WrongUsage(std::string(read.message()));
  absl::StatusOr<Reread<TokenTable>> tokens = ReadTokens(flags);
  if (!tokens.ok()) return Fail(tokens.status());
  flags.server.tokens = *std::move(tokens);
  absl::StatusOr<Reread<std::string>> metrics_token = ReadMetricsToken(flags);
  if (!metrics_token.ok()) return Fail(metrics_token.status());
  flags.server.metrics_token = *std::move(metrics_token);
  absl::StatusOr<Reread<ObjectKeys>> keys = ReadDrawKeys(flags);
  if (!keys.ok()) return Fail(keys.status());
  flags.server.draw_keys = *std::move(keys);
  InitLog("chainfleet-server", flags.log_level);
  WarnOfPasswordInArguments(flags.server.state, argc, argv);
  return Run(flags);
}

}  // namespace
}  // namespace chainfleet

int main(int argc, char** argv) { return chainfleet::Main(argc, argv); }
