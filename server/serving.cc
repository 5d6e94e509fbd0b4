#include "server/serving.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file_system.h"
#include "core/base/host_port.h"
#include "core/base/log.h"
#include "server/rpc/services.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kShutdownDeadline = absl::Seconds(10);

// If the store is lost, exit: the next process loads the stored state again.
void EndProcess(const absl::Status&) { std::_Exit(EXIT_FAILURE); }

// `listen` with the port that a server got, so that the next one in this process gets it, too.
void KeepPort(int port, std::string* listen) {
  if (const auto address = ParseHostPort(*listen); address.ok()) *listen = absl::StrCat(address->host, ":", port);
}

}  // namespace

absl::StatusOr<bool> Serving::WaitToLead() {
  if (!IsPostgres(options_.state)) return true;
  CHAINFLEET_ASSIGN_OR_RETURN(lead_, chainfleet::WaitToLead(options_, [&](absl::Duration pause) {
                                const timespec wait = absl::ToTimespec(pause);
                                const int received = sigtimedwait(&signals_, nullptr, &wait);
                                return received < 0 || received == kBackupCame;  // others end the wait
                              }));
  return lead_.has_value();
}

absl::Status Serving::Restore() {
  CHAINFLEET_RETURN_IF_ERROR(Server::FillObjects(options_));
  CHAINFLEET_RETURN_IF_ERROR(Server::FillState(options_));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool leads, WaitToLead());
  if (!leads) return absl::CancelledError("interrupted before the end: start the server with --restored");
  return Server::Restore(options_, std::exchange(lead_, std::nullopt), EndProcess);
}

absl::Status Serving::Run(const std::function<void()>& before_end) {
  if (RealFileSystem()->SizeBytes(RestoringFile()).ok()) {
    // A former process ended before the store was restored. Its last step in filling the state removes this file.
    const absl::StatusOr<int64_t> unfilled = RealFileSystem()->SizeBytes(RestoredState(options_.data_directory));
    if (absl::IsNotFound(unfilled.status())) {
      ExpectRestored();
    } else {
      CHAINFLEET_RETURN_IF_ERROR(TakeBackup());
    }
  }
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool leads, WaitToLead());
    if (!leads) return absl::OkStatus();
    CHAINFLEET_RETURN_IF_ERROR(Start());
    int received = 0;
    sigwait(&signals_, &received);
    if (received == kBackupCame) {
      Log(LogLevel::kInfo, "a backup came: the ports close until the store is restored");
    } else {
      Log(LogLevel::kInfo, "shutting down; a second signal exits at once", {{"signal", received}});
      signal(SIGTERM, SIG_DFL);
      signal(SIGINT, SIG_DFL);
      signal(kBackupCame, SIG_IGN);
      pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    }
    server_->Shutdown(kShutdownDeadline);
    if (received != kBackupCame) before_end();
    server_.reset();
    if (received != kBackupCame || IsAskedToEnd()) return absl::OkStatus();
    CHAINFLEET_RETURN_IF_ERROR(TakeBackup());
  }
}

absl::Status Serving::Start() {
  CHAINFLEET_ASSIGN_OR_RETURN(server_, Server::Start(options_, std::exchange(lead_, std::nullopt), EndProcess));
  // The next start in this process is a usual one.
  RealFileSystem()->Remove(RestoringFile()).IgnoreError();
  options_.opening = Opening::kUsual;
  options_.objects_moved = options_.renew_draws = false;
  KeepPort(server_->port(), &options_.listen);
  KeepPort(server_->http_port(), &options_.http_listen);
  if (!server_->metrics_address().empty()) options_.metrics_listen = server_->metrics_address();
  CHAINFLEET_RETURN_IF_ERROR(Announce());
  Log(LogLevel::kInfo, "serving",
      {{"port", server_->port()},
       {"http", server_->http_port()},
       {"metrics", server_->metrics_address()},
       {"data", options_.data_directory}});
  return absl::OkStatus();
}

absl::Status Serving::Announce() {
  if (port_file_.empty()) return absl::OkStatus();
  const std::string temp = port_file_ + ".new";  // renamed, so that readers never see a partial file
  std::ofstream(temp) << "{\"grpc\": " << server_->port()
                      << ", \"metrics\": " << ParseHostPort(server_->metrics_address()).value_or(HostPort{}).port
                      << ", \"http\": " << server_->http_port() << "}\n";
  if (std::rename(temp.c_str(), port_file_.c_str()) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write the port file ", port_file_));
}

void Serving::ExpectRestored() {
  options_.opening = Opening::kRestored;
  options_.objects_moved = true;
}

absl::Status Serving::TakeBackup() {
  FileSystem* const disk = RealFileSystem();
  // If the process dies before the store is restored, the next one goes on.
  CHAINFLEET_RETURN_IF_ERROR(disk->WriteSynced(RestoringFile(), std::string()));
  CHAINFLEET_RETURN_IF_ERROR(disk->SyncFolder(options_.data_directory));
  absl::Status filled = Server::FillState(options_);
  if (absl::IsAlreadyExists(filled)) {  // a former process committed the state and ended before it removed the file
    CHAINFLEET_RETURN_IF_ERROR(disk->Remove(RestoredState(options_.data_directory)));
    filled = disk->SyncFolder(options_.data_directory);
  }
  if (ReasonOf(filled) == "IN_USE") return filled;  // another process may fill the state
  if (absl::IsUnavailable(filled)) {                // whether the state was committed is unknown
    return Annotate(filled, absl::StrCat("the next start goes on with the restore; to keep the former store instead, "
                                         "remove ",
                                         RestoringFile()));
  }
  if (!filled.ok()) {
    Log(LogLevel::kError, "the backup was not restored: the store stays as it was", {{"error", filled.ToString()}});
    return disk->Remove(RestoringFile());
  }
  ExpectRestored();
  return absl::OkStatus();
}

bool Serving::IsAskedToEnd() const {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1;
}

}  // namespace chainfleet
