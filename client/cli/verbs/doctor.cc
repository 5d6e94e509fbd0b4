#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/local_fleet.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/table.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kLowDiskBytes = 2'000'000'000;
constexpr absl::Duration kServerTimeout = absl::Seconds(2);  // do not wait for a takeover

// The checks as rows of a table; doctor ends with the first failure.
struct Checks {
  Table table{{"CHECK", "RESULT", "DETAIL"}};
  absl::Status first_failure;

  void Add(const std::string& name, const absl::Status& status, const std::string& detail) {
    table.AddRow({name, status.ok() ? "ok" : "FAILED", status.ok() ? detail : std::string(status.message())});
    first_failure.Update(status);
  }
};

// A host that only calls servers has neither of the programs that `up` starts.
void CheckPrograms(const LocalFleet& fleet, Checks* checks) {
  std::vector<std::string> missing;
  for (const std::string& program : {fleet.server().program(), fleet.worker(0).program()}) {
    if (!fs::exists(program)) missing.push_back(program);
  }
  std::error_code ignored;
  const bool only_calls = missing.size() == 2 && !fs::exists(fleet.run_folder(), ignored);
  absl::Status status;
  if (!missing.empty() && !only_calls) {
    status = absl::FailedPreconditionError(absl::StrCat(missing[0], " is missing: build it"));
  }
  checks->Add("programs", status,
              only_calls ? "chainfleet-server and chainfleet-worker are not installed here" : "next to this one");
}

void CheckDataFolder(const LocalFleet& fleet, Checks* checks) {
  fs::path folder = fleet.data_folder();
  while (!fs::exists(folder)) folder = folder.parent_path();  // ends at /
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  absl::Status status;
  if (error) status = absl::FailedPreconditionError(absl::StrCat(folder.string(), ": ", error.message()));
  if (!error && space.available < kLowDiskBytes) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("only ", FormatBytes(static_cast<int64_t>(space.available)), " free below ", folder.string()));
  }
  checks->Add("data folder", status,
              absl::StrCat(fleet.data_folder(), ", ", FormatBytes(static_cast<int64_t>(space.available)), " free"));
}

void CheckServer(Invocation* run, Checks* checks) {
  auto client = run->ConnectTo(run->address, std::min(run->timeout, kServerTimeout));
  if (!client.ok()) return checks->Add("server", client.status(), "");
  const auto info = client->GetServerInfo();
  if (!info.ok()) return checks->Add("server", info.status(), "");
  const std::string& folder = info->data_directory();  // empty unless the caller is an operator or an admin
  checks->Add("server", absl::OkStatus(),
              absl::StrCat("version ", info->version(), folder.empty() ? "" : ", data in ", folder));
  const bool speaks =
      info->protocol_version() >= kOldestProtocolVersion && info->oldest_protocol_version() <= kProtocolVersion;
  checks->Add("protocol",
              speaks ? absl::OkStatus()
                     : absl::FailedPreconditionError(absl::StrCat("the server speaks ", info->oldest_protocol_version(),
                                                                  " to ", info->protocol_version(), ", this program ",
                                                                  kOldestProtocolVersion, " to ", kProtocolVersion)),
              absl::StrCat(info->protocol_version()));
  const auto workers = client->ListWorkers();
  if (!workers.ok()) return checks->Add("workers", workers.status(), "");
  std::vector<std::string> names;
  for (const v1::Worker& worker : *workers) names.push_back(absl::StrCat(worker.id(), " (", worker.device(), ")"));
  checks->Add("workers", names.empty() ? absl::FailedPreconditionError("no worker: jobs will wait") : absl::OkStatus(),
              absl::StrJoin(names, ", "));
}

// `up` does not watch the workers that it has started, so a worker that crashed stays away until the next `up`. No
// failure: somebody may have ended it on purpose.
void ShowEndedWorkers(const LocalFleet& fleet, Checks* checks) {
  if (!fleet.server().Pid()) return;  // the whole fleet has ended, as after a reboot
  for (const Daemon& worker : fleet.KnownWorkers()) {
    if (!worker.HasEnded()) continue;
    checks->table.AddRow({worker.name(), "ended",
                          absl::StrCat("its log is ", worker.log_path(), "; `chainfleet up --data-dir ",
                                       fleet.data_folder(), "` starts it again")});
  }
}

absl::Status Doctor(Invocation* run, const std::string& data_folder) {
  CHAINFLEET_ASSIGN_OR_RETURN(const LocalFleet fleet, LocalFleet::In(data_folder));
  Checks checks;
  CheckPrograms(fleet, &checks);
  checks.Add("cores", absl::OkStatus(), absl::StrCat(std::thread::hardware_concurrency()));
  CheckDataFolder(fleet, &checks);
  CheckServer(run, &checks);
  ShowEndedWorkers(fleet, &checks);
  std::cout << checks.table.Render();
  return checks.first_failure;
}

}  // namespace

void AddDoctor(CLI::App* program, Invocation* run) {
  const auto data_folder = std::make_shared<std::string>(DefaultDataFolder());
  CLI::App* verb = AddVerb(program, run, "doctor", "Check programs, disk, server and workers, and say what to fix",
                           "  chainfleet doctor", [=] { return Doctor(run, *data_folder); });
  verb->add_option("--data-dir", *data_folder, "Data folder of `up` [" + *data_folder + "]")->option_text("DIR");
  AddServerOptions(verb, run);
}

}  // namespace chainfleet
