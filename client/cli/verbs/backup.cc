#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/local_fleet.h"
#include "client/cli/output_file.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/table.h"
#include "core/base/file_system.h"
#include "core/base/shared_work.h"
#include "core/base/thread_pool.h"
#include "core/store/backup/backup_folder.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

constexpr int kLines = 8;  // an object store takes its time for each object
constexpr size_t kBatch = size_t{8} * kLines;
constexpr absl::Duration kStockTaking = absl::Hours(1);
constexpr absl::Duration kOneCall = absl::Seconds(30);  // a server that restores does not answer

// The message that -o prints.
v1::BackupCopy Describe(const BackupManifest& manifest) {
  v1::BackupCopy copy;
  copy.set_server_version(manifest.server_version);
  copy.set_engine(manifest.engine);
  copy.set_incarnation(manifest.incarnation);
  *copy.mutable_state() = ToProto(manifest.state);
  *copy.mutable_list() = ToProto(manifest.list);
  copy.set_objects(manifest.objects);
  copy.set_object_bytes(manifest.object_bytes);
  return copy;
}

// Copies what a server holds into the folder.
class BackupRun {
 public:
  // Reads objects over all `clients` at a time, and begins no more of them `limit` from now.
  BackupRun(std::vector<Client> clients, const Clock* clock, absl::Duration limit, std::string folder)
      : clients_(std::move(clients)), clock_(*clock), end_(clock->Monotonic() + limit), folder_(std::move(folder)) {}

  absl::Status Copy(const v1::BackupCopy& copy) {
    CHAINFLEET_ASSIGN_OR_RETURN(const BlobRef state, Take(copy.state(), "state", "db"));
    CHAINFLEET_ASSIGN_OR_RETURN(BlobRef list, Take(copy.list(), "objects", "txt"));
    missing_.clear();
    BackupTotals seen;
    std::vector<BlobRef> batch;
    const auto take = [&]() -> absl::Status {
      CHAINFLEET_RETURN_IF_ERROR(TakeObjects(std::exchange(batch, {}), &seen));
      text_.Show(absl::StrCat(seen.objects, " of ", copy.objects(), " objects, ", FormatBytes(seen.bytes), " of ",
                              FormatBytes(copy.object_bytes())));
      return absl::OkStatus();
    };
    CHAINFLEET_RETURN_IF_ERROR(VisitBackupList(folder_ + "/" + list.name, [&](const BlobRef& object) {
      batch.push_back(object);
      return batch.size() < kBatch ? absl::OkStatus() : take();
    }));
    CHAINFLEET_RETURN_IF_ERROR(take());
    text_.Clear();
    if (!missing_.empty()) {
      CHAINFLEET_ASSIGN_OR_RETURN(list, ListWithoutMissing(list));
    }
    manifest_ = {.server_version = copy.server_version(),
                 .engine = copy.engine(),
                 .incarnation = copy.incarnation(),
                 .created_at = absl::FormatTime(absl::RFC3339_sec, clock_.Wall(), absl::UTCTimeZone()),
                 .state = state,
                 .list = list,
                 .objects = seen.objects,
                 .object_bytes = seen.bytes};
    for (const auto& [name, bytes] : missing_) {
      --manifest_.objects;
      manifest_.object_bytes -= bytes;
    }
    return absl::OkStatus();
  }

  // Called after the server has kept all objects until the end of Copy.
  absl::Status Finish(const OutputFormat& format) {
    CHAINFLEET_RETURN_IF_ERROR(FinishBackup(folder_, manifest_));
    PrintOne(std::cout, format, Describe(manifest_), folder_, [&] {
      return absl::StrCat("backup of ", manifest_.objects, " objects (", FormatBytes(manifest_.object_bytes), ") in ",
                          folder_, ", ", copied_.objects, " of them new (", FormatBytes(copied_.bytes), ")\n");
    });
    if (missing_.empty()) return absl::OkStatus();
    for (const auto& [name, bytes] : missing_) std::cerr << "missing or damaged on the server: " << name << "\n";
    return absl::DataLossError(
        absl::StrCat(missing_.size(), " objects are missing or damaged on the server: the ", "backup has all others"));
  }

 private:
  // Names the file by its digest, so that a backup that does not end leaves the files of the last one alone.
  absl::StatusOr<BlobRef> Take(const v1::BlobRef& copy, const std::string& kind, const std::string& ending) {
    BlobRef file = FromProto(copy);
    file.name = absl::StrCat(kind, "-", file.sha256.substr(0, 12), ".", ending);
    CHAINFLEET_RETURN_IF_ERROR(Download(&clients_[0], copy.name(), /*is_copy=*/true, file, folder_ + "/" + file.name));
    return file;
  }

  absl::Status TakeObjects(const std::vector<BlobRef>& objects, BackupTotals* seen) {
    std::vector<absl::StatusOr<bool>> taken(objects.size(), false);
    const size_t lines = clients_.size();
    ShareWork(&threads_, static_cast<int>(lines) - 1, std::ssize(clients_), [&](int64_t line) {
      for (size_t i = line; i < objects.size(); i += lines) taken[i] = TakeObject(objects[i], &clients_[line]);
    });
    for (size_t i = 0; i < objects.size(); ++i) {
      ++seen->objects;
      seen->bytes += objects[i].size_bytes;
      if (absl::IsNotFound(taken[i].status()) || absl::IsDataLoss(taken[i].status())) {
        missing_.emplace(objects[i].name, objects[i].size_bytes);
        continue;
      }
      CHAINFLEET_RETURN_IF_ERROR(taken[i].status());
      copied_.objects += *taken[i] ? 1 : 0;
      copied_.bytes += *taken[i] ? objects[i].size_bytes : 0;
    }
    return absl::OkStatus();
  }

  // False if the folder has the object.
  absl::StatusOr<bool> TakeObject(const BlobRef& object, Client* client) const {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, BackupObjectPath(folder_, object.name));
    const absl::StatusOr<int64_t> size = RealFileSystem()->SizeBytes(path);
    if (size.ok() && *size == object.size_bytes) return false;
    if (clock_.Monotonic() >= end_) return absl::DeadlineExceededError("the copied objects stay in the folder");
    CHAINFLEET_RETURN_IF_ERROR(MakeOutputFolder(std::filesystem::path(path).parent_path().string()));
    CHAINFLEET_RETURN_IF_ERROR(Download(client, object.name, /*is_copy=*/false, object, path));
    return true;
  }

  static absl::Status Download(Client* client, const std::string& name, bool is_copy, const BlobRef& expected,
                               const std::string& path) {
    return WriteOutputFile(path, [&](const std::string& partial) -> absl::Status {
      CHAINFLEET_RETURN_IF_ERROR(client->ReadObject(name, is_copy, partial));
      return CheckBackupFile(partial, expected);
    });
  }

  absl::StatusOr<BlobRef> ListWithoutMissing(const BlobRef& list) {
    const std::string all = folder_ + "/" + list.name, path = folder_ + "/objects-new.txt";
    CHAINFLEET_RETURN_IF_ERROR(WriteBackupList(path, [&](const BackupVisitor& add) {
                                 return VisitBackupList(all, [&](const BlobRef& object) {
                                   return missing_.contains(object.name) ? absl::OkStatus() : add(object);
                                 });
                               }).status());
    CHAINFLEET_ASSIGN_OR_RETURN(BlobRef left, DescribeFile(path));
    left.name = absl::StrCat("objects-", left.sha256.substr(0, 12), ".txt");
    CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->Rename(path, folder_ + "/" + left.name));
    return left;
  }

  std::vector<Client> clients_;
  ThreadPool threads_{kLines - 1};
  const Clock& clock_;
  const absl::Duration end_;
  const std::string folder_;
  LiveText text_{stderr};
  BackupTotals copied_;
  std::map<std::string, int64_t> missing_;  // sizes by name
  BackupManifest manifest_;
};

absl::Status Verify(const std::string& folder, const OutputFormat& format) {
  LiveText text(stderr);
  BackupTotals checked;
  CHAINFLEET_ASSIGN_OR_RETURN(const BackupManifest manifest,
                              ReadBackup(folder, [&](const BlobRef& object, const std::string&) {
                                checked.bytes += object.size_bytes;
                                text.Show(absl::StrCat(++checked.objects, " objects checked"));
                                return absl::OkStatus();
                              }));
  text.Clear();
  PrintOne(std::cout, format, Describe(manifest), folder, [&] {
    return absl::StrCat("the backup of ", manifest.created_at, " (", manifest.engine, ", chainfleet ",
                        manifest.server_version, ") is whole: the state and ", checked.objects, " objects (",
                        FormatBytes(checked.bytes), ")\n");
  });
  return absl::OkStatus();
}

absl::Status BackUp(Invocation* run, const std::string& folder) {
  umask(S_IRWXG | S_IRWXO);
  CHAINFLEET_RETURN_IF_ERROR(MakeOutputFolder(folder));
  if (chmod(folder.c_str(), S_IRWXU) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot hide ", folder, " from others: ", std::strerror(errno)));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const auto lock, FileLock::Acquire(folder + "/lock"));
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  ExitOnInterrupt("\ninterrupted: the same command goes on\n");
  std::vector<Client> clients;
  for (int i = 0; i < kLines; ++i) {
    CHAINFLEET_ASSIGN_OR_RETURN(Client line, run->Connect());
    clients.push_back(std::move(line));
  }
  BackupRun backup(std::move(clients), &run->clock, run->timeout, folder);
  CHAINFLEET_RETURN_IF_ERROR(client.Backup([&](const v1::BackupCopy& copy) { return backup.Copy(copy); }));
  return backup.Finish(run->format);
}

// All files of the backup: its manifest comes last.
absl::StatusOr<std::vector<std::string>> FilesOf(const BackupManifest& manifest, const std::string& folder) {
  std::vector<std::string> files = {manifest.state.name, manifest.list.name};
  CHAINFLEET_RETURN_IF_ERROR(VisitBackupList(folder + "/" + manifest.list.name, [&](const BlobRef& object) {
    files.push_back("objects/" + object.name);
    return absl::OkStatus();
  }));
  files.push_back("manifest.json");
  return files;
}

// Waits until a server has started after `before`, for at most `limit`.
absl::StatusOr<v1::ServerInfo> AwaitRestart(const Invocation& run, const v1::ServerInfo& before, absl::Duration limit) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run.ConnectTo(run.address, std::clamp(limit, absl::Seconds(1), kOneCall)));
  LiveText text(stderr);
  absl::StatusOr<v1::ServerInfo> now;
  const bool restarted = WaitUntil(&run.clock, limit, [&] {
    text.Show("the server restores the backup");
    now = client.GetServerInfo();
    if (!now.ok()) return absl::IsUnauthenticated(now.status());  // else its port is closed
    return FromProto(now->started_at()) != FromProto(before.started_at());
  });
  text.Clear();
  if (restarted) return now;
  return absl::DeadlineExceededError(absl::StrCat("the server took the backup but did not restart ",
                                                  limit == kStockTaking ? "within an hour" : "before --timeout",
                                                  ": see its log"));
}

// Sends the backup to a running server.
absl::Status RestoreOnline(Invocation* run, const std::string& folder) {
  CHAINFLEET_ASSIGN_OR_RETURN(const BackupManifest manifest, ReadBackupManifest(folder));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(manifest, folder));
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::ServerInfo before, client.GetServerInfo());
  const absl::Duration end = run->clock.Monotonic() + run->timeout;
  LiveText text(stderr);
  const absl::Status sent = client.Restore(folder, files, [&](int64_t bytes) {
    text.Show(absl::StrCat("sent ", FormatBytes(bytes), ", the objects have ", FormatBytes(manifest.object_bytes)));
  });
  text.Clear();
  if (!sent.ok() && ReasonOf(sent) != "NOT_EMPTY") return sent;
  // If the answer was lost, the second attempt finds the store full.
  const bool limited = run->timeout < absl::InfiniteDuration();
  const absl::Duration left = limited ? end - run->clock.Monotonic() : kStockTaking;
  const absl::StatusOr<v1::ServerInfo> now = sent.ok() ? AwaitRestart(*run, before, left) : client.GetServerInfo();
  if (!absl::IsUnauthenticated(now.status())) {  // the server knows the tokens of the backup now, and not this one
    CHAINFLEET_RETURN_IF_ERROR(now.status());
    if (now->store_incarnation() == before.store_incarnation()) {
      CHAINFLEET_RETURN_IF_ERROR(sent);
      return absl::AbortedError(
          "the server did not restore the backup and kept its own store: its log has the reason; restore again");
    }
  }
  PrintOne(std::cout, run->format, Describe(manifest), folder, [&] {
    return absl::StrCat("restored: the server has the backup of ", manifest.created_at, ", ", manifest.objects,
                        " objects (", FormatBytes(manifest.object_bytes), ")\n");
  });
  return absl::OkStatus();
}

// INVALID_ARGUMENT / USAGE: an option that only calls to a server use, or a format that the server's program lacks.
absl::Status CheckOffline(const CLI::App& verb) {
  for (const char* option : {"--address", "--context", "--timeout", "-o"}) {
    if (verb.count(option) == 0) continue;
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat("--offline calls no server and prints text: leave ", option, " out")),
        kUsageReason);
  }
  return absl::OkStatus();
}

struct RestoreOptions {
  std::string folder, data_folder = DefaultDataFolder(), state, blobs;
  bool offline = false;
};

// The server has the stores' credentials and engines, so it does the work and this process becomes the server.
absl::Status RestoreOffline(const RestoreOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(const LocalFleet fleet, LocalFleet::In(options.data_folder));
  const std::string program = fleet.server().program();
  std::vector<std::string> arguments = {program, "--restore", options.folder, "--data-dir", fleet.data_folder()};
  // Not as arguments, which everybody on the host may read: they may hold a password.
  if (!options.state.empty()) setenv("CHAINFLEET_STATE", options.state.c_str(), 1);
  if (!options.blobs.empty()) setenv("CHAINFLEET_BLOBS", options.blobs.c_str(), 1);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return absl::FailedPreconditionError(absl::StrCat("cannot run ", program, ": ", std::strerror(errno)));
}

}  // namespace

void AddBackup(CLI::App* program, Invocation* run) {
  struct Options {
    std::string folder;
    bool verify = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb =
      AddVerb(program, run, "backup", "Copy everything that a running server holds to a folder; for admins",
              "  chainfleet backup /srv/backup\n"
              "  chainfleet backup --verify /srv/backup\n\n"
              "The server keeps serving and deletes nothing meanwhile. Repeat the command with the same\n"
              "folder, also after an interruption, to copy only new objects.",
              [=] { return options->verify ? Verify(options->folder, run->format) : BackUp(run, options->folder); });
  verb->add_option("FOLDER", options->folder, "Folder of the backup")->required();
  verb->add_flag("--verify", options->verify, "Only check every file of the folder against its SHA-256");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

void AddRestore(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<RestoreOptions>();
  CLI::App* verb = AddVerb(
      program, run, "restore", "Fill an empty server from the folder of `chainfleet backup`; for admins",
      "  chainfleet restore /srv/backup\n"
      "  chainfleet restore /srv/backup --offline --data-dir /srv/chainfleet\n"
      "  chainfleet restore /srv/backup --offline --state postgresql://chainfleet@db/chainfleet --blobs "
      "s3://bucket/fleet\n\n"
      "Sends the backup to a running server that has no job, data set or model. The server then serves the backup.\n"
      "--offline fills the stores of a server that does not run. Run it where the server will run, with its\n"
      "environment, then start the server as usual. The database engine may differ from that of the backup.",
      [=] {
        if (!options->offline) return RestoreOnline(run, options->folder);
        CHAINFLEET_RETURN_IF_ERROR(CheckOffline(*program->get_subcommand("restore")));
        return RestoreOffline(*options);
      });
  verb->add_option("FOLDER", options->folder, "Folder of the backup")->required();
  CLI::Option* const offline =
      verb->add_flag("--offline", options->offline, "Fill the stores of a server that does not run");
  verb->add_option("--data-dir", options->data_folder, "Data directory of the server [" + options->data_folder + "]")
      ->option_text("DIR")
      ->needs(offline);
  verb->add_option("--state", options->state, "Database of the server: sqlite or postgresql://... [CHAINFLEET_STATE]")
      ->option_text("DATABASE")
      ->needs(offline);
  verb->add_option("--blobs", options->blobs, "Objects of the server: s3://BUCKET/PREFIX [CHAINFLEET_BLOBS]")
      ->option_text("URL")
      ->needs(offline);
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
