#include "server/scale/slurm_scaler.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/host_port.h"

namespace chainfleet {
namespace {

// An unknown state counts as a worker, because the job may still become one.
ClusterJob::State StateOf(const std::string& word) {
  for (const char* running : {"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING"}) {
    if (word == running) return ClusterJob::State::kRunning;
  }
  for (const char* ending : {"COMPLETING", "STAGE_OUT", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL",
                             "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED"}) {
    if (word == ending) return ClusterJob::State::kEnding;
  }
  return ClusterJob::State::kPending;
}

// JobHeldUser, JobHeldAdmin, JobHoldMaxRequeue, "launch failed requeued held", "job requeued in held state": such a job
// waits until a person releases it.
bool IsHeld(const std::string& reason) {
  return absl::StrContains(reason, "held") || absl::StrContains(reason, "JobHeld") ||
         absl::StrContains(reason, "JobHold");
}

bool IsJobId(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// --parsable prints JOB or JOB;CLUSTER.
absl::StatusOr<std::string> ParseSubmitted(const std::string& output) {
  const std::string job = output.substr(0, output.find_first_of(";\n"));
  if (IsJobId(job)) return job;
  return absl::InternalError(absl::StrCat("sbatch --parsable printed no job id: ", output.substr(0, 200)));
}

// gRPC would use https_proxy too, which is meant for the bucket. It must dial these hosts directly.
std::string HostsOf(const std::string& addresses) {
  std::vector<std::string> hosts;
  for (const std::string& address : std::vector<std::string>(absl::StrSplit(addresses, ','))) {
    if (const auto parsed = ParseHostPort(address); parsed.ok()) hosts.push_back(parsed->BareHost());
  }
  return absl::StrJoin(hosts, ",");
}

}  // namespace

std::string SlurmJobName(const std::string& store_incarnation) { return "chainfleet-" + store_incarnation; }

SlurmScaler::SlurmScaler(const std::string& store_incarnation, const std::vector<std::string>& former_incarnations,
                         std::string script, CommandRunner run)
    : job_name_(SlurmJobName(store_incarnation)),
      listed_names_(job_name_),
      script_(std::move(script)),
      run_(std::move(run)) {
  for (const std::string& former : former_incarnations) absl::StrAppend(&listed_names_, ",", SlurmJobName(former));
}

absl::StatusOr<std::vector<ClusterJob>> SlurmScaler::List() {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string output, run_({"squeue", "--me", "--noheader", "--name=" + listed_names_,
                                                              "--sort=i", "--format=%A|%T|%r"}));
  std::vector<ClusterJob> jobs;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits('|', 2));
    if (words.size() != 3 || !IsJobId(words[0])) {
      return absl::InternalError(absl::StrCat("squeue printed a line that is not a job: ", line.substr(0, 200)));
    }
    ClusterJob& job = jobs.emplace_back(ClusterJob{words[0], StateOf(words[1]), absl::StrCat("slurm-", words[0], "-")});
    if (job.state == ClusterJob::State::kPending && IsHeld(words[2])) job.held = words[2];
  }
  return jobs;
}

absl::StatusOr<std::string> SlurmScaler::Submit() {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string output, run_({"sbatch", "--parsable", "--job-name=" + job_name_,
                                                              "--ntasks=1", "--export=ALL", script_}));
  return ParseSubmitted(output);
}

absl::Status SlurmScaler::Withdraw(const std::string& job) {
  return run_({"scancel", "--state=PENDING", job}).status();
}

// Signals only the job's steps: the batch shell would pass the signal on, and a worker exits at once on a second one.
absl::Status SlurmScaler::Drain(const std::string& job) { return run_({"scancel", "--signal=TERM", job}).status(); }

absl::Status SlurmScaler::Kill(const std::string& job) { return run_({"scancel", job}).status(); }

std::vector<std::string> SlurmEnvironment(const std::vector<std::string>& ours, const SlurmWorkerSettings& settings) {
  constexpr std::array kWanted = {"PATH=",
                                  "HOME=",
                                  "USER=",
                                  "LOGNAME=",
                                  "LANG=",
                                  "LD_LIBRARY_PATH=",
                                  "SLURM_CONF=",
                                  "SBATCH_",
                                  "OMP_",
                                  "AWS_CA_BUNDLE=",
                                  "http_proxy=",
                                  "https_proxy=",
                                  "HTTPS_PROXY=",
                                  "all_proxy=",
                                  "ALL_PROXY=",
                                  "no_proxy=",
                                  "NO_PROXY=",
                                  "CHAINFLEET_WORKER_TOKEN=",
                                  "CHAINFLEET_WORKER_TOKEN_FILE=",
                                  "CHAINFLEET_METRICS_TOKEN=",
                                  "CHAINFLEET_METRICS_TOKEN_FILE=",
                                  "CHAINFLEET_CA_FILE=",
                                  "CHAINFLEET_CERT_FILE=",
                                  "CHAINFLEET_KEY_FILE=",
                                  "CHAINFLEET_BIN="};
  std::vector<std::string> environment;
  for (const std::string& variable : ours) {
    if (std::ranges::any_of(kWanted, [&](const char* wanted) { return absl::StartsWith(variable, wanted); })) {
      environment.push_back(variable);
    }
  }
  environment.push_back("CHAINFLEET_ADDRESS=" + settings.address);
  environment.push_back("no_grpc_proxy=" + HostsOf(settings.address));
  environment.push_back(absl::StrCat("CHAINFLEET_CHAIN_SLOTS=", settings.chain_slots));
  return environment;
}

}  // namespace chainfleet
