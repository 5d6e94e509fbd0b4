// Checks, stores and registers the file of a model: one that was uploaded, or one that this server reads from its URI.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/spool_file.h"
#include "core/domain/job_spec.h"
#include "core/domain/stored_model.h"
#include "core/store/draw_codec/sha256.h"
#include "server/control/reply.h"
#include "server/intake/upload_limits.h"
#include "server/rpc/services.h"

namespace chainfleet {

// A file on disk, within the bounds of all uploads. Not thread-safe.
class IncomingModel {
 public:
  IncomingModel(const ServiceParts& parts, const std::string& tenant)
      : share_(parts.upload_budget, parts.auth->wants_tokens() ? tenant : "") {}

  // DISK_FULL, UNAVAILABLE; Add also returns the errors of UploadShare.
  absl::Status Open(const std::string& folder);
  absl::Status Add(std::string_view part);
  // Counts memory that reading the file takes, until this object is gone. Errors of UploadShare.
  absl::Status Admit(int64_t bytes) { return share_.Add(bytes); }
  const std::string& tenant() const { return share_.tenant(); }  // as UploadShare's
  int64_t size_bytes() const { return size_bytes_; }
  ByteSource Content() const { return spool_->Content(size_bytes_); }
  // Called once.
  DigestHex Digest() { return sha256_.Hex(); }

 private:
  UploadShare share_;
  std::optional<SpoolFile> spool_;  // none before Open
  int64_t size_bytes_ = 0;
  Sha256 sha256_;
};

struct ModelIntake {
  ServiceParts parts;
  Principal caller;
  std::string name;  // "": the file must be safetensors, and is named by its content
  std::string uri;   // "": `file` is complete
  std::shared_ptr<IncomingModel> file;
  std::function<bool()> waits;  // false: the client has gone, and the work is pointless
  Reply<StoredModel> done;
};

// Returns at once. Errors of DatasetRoots::Read, IncomingModel::Add and of the tenant's limits. INVALID_ARGUMENT: the
// file is no model. PERMISSION_DENIED / NOT_ALLOWED or FAILED_PRECONDITION / MODULES_OFF: it is TorchScript.
void TakeIn(ModelIntake intake);

// Stores the files that `init.weights` names by URI, one after another, and answers with the spec that has the names of
// the stored files in their place. Errors as TakeIn, with the field.
void StoreWeights(const ServiceParts& parts, const Principal& caller, const JobSpec& spec,
                  const std::function<bool()>& waits, const Reply<JobSpec>& done);

// True if a job names a file by URI.
bool HasUris(const InitSpec& init);

}  // namespace chainfleet
