#include "server/rpc/restore_call.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file_system.h"
#include "core/store/state_store/state_copy.h"
#include "server/control/backup_objects.h"

namespace chainfleet {

RestoreCall::RestoreCall(const ServiceParts& parts, const absl::Status& allowed, TokenCheck still) : parts_(parts) {
  Begin(allowed, parts.timers, std::move(still));
}

// A client that reads an error may try again at once.
absl::Status RestoreCall::Take(const v1::RestoreRequest& message) {
  absl::Status taken = TakePart(message);
  if (!taken.ok()) backup_.reset();
  return taken;
}

absl::Status RestoreCall::TakePart(const v1::RestoreRequest& message) {
  if (backup_ == nullptr) {
    // Checked again when the state is filled. This check only spares the client the upload.
    CHAINFLEET_RETURN_IF_ERROR(CheckHoldsNothing(parts_.state_address, parts_.state_password));
    if (RealFileSystem()->SizeBytes(RestoredState(parts_.data_directory)).ok()) {
      return WithReason(absl::FailedPreconditionError("the server restores another backup already"), "IN_USE");
    }
    CHAINFLEET_ASSIGN_OR_RETURN(backup_, IncomingBackup::Open(RestoreFolder(parts_.data_directory)));
  }
  switch (message.part_case()) {
    case v1::RestoreRequest::kHeader:
      return backup_->Begin(message.header().file(), message.header().size_bytes());
    case v1::RestoreRequest::kData:
      return backup_->Add(message.data());
    case v1::RestoreRequest::PART_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a message of Restore must have a header or data");
}

void RestoreCall::TakeEnd() {
  if (backup_ == nullptr) return finisher()->Finish(absl::InvalidArgumentError("Restore ended before its first file"));
  parts_.executor->Schedule([parts = parts_, backup = std::move(backup_), finisher = finisher()]() mutable {
    finisher->Run([&] {
      const absl::Status taken = Store(parts, backup.get(), [&] { return finisher->Recheck(); });
      backup.reset();
      finisher->Finish(taken);
      if (taken.ok()) kill(getpid(), kBackupCame);
    });
  });
}

// Stores the objects, then the state.
absl::Status RestoreCall::Store(const ServiceParts& parts, IncomingBackup* backup,
                                const std::function<bool()>& goes_on) {
  // No state names the objects before this server is gone, so the collector, which lives as long, must not run again.
  static auto* const no_deletion = new std::shared_ptr<void>;
  const std::shared_ptr<void> hold = parts.garbage->Hold();
  CHAINFLEET_RETURN_IF_ERROR(backup->End());
  CHAINFLEET_ASSIGN_OR_RETURN(const BackupManifest manifest, PutBackupObjects(backup->folder(), parts.blobs, goes_on));
  const std::string state = backup->folder() + "/state.db";
  CHAINFLEET_RETURN_IF_ERROR(MigrateCopy(absl::StrCat(backup->folder(), "/", manifest.state.name), state));
  CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->Rename(state, RestoredState(parts.data_directory)));
  *no_deletion = hold;
  return absl::OkStatus();
}

}  // namespace chainfleet
