// The dependencies of the services, by reference: all parts of the server below floor 5.
#pragma once

#include <csignal>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/byte_budget.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/limits.h"
#include "core/base/rng_key.h"
#include "core/store/audit_log/audit_log.h"
#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/database_password.h"
#include "core/store/state_store/state_store.h"
#include "server/adapters/dispatcher_draw_catalog.h"
#include "server/control/access_tokens.h"
#include "server/control/dispatcher.h"
#include "server/control/garbage_collector.h"
#include "server/control/trace_table.h"
#include "server/control/upload_signer.h"
#include "server/intake/dataset_roots.h"
#include "server/intake/object_checks.h"
#include "server/intake/upload_limits.h"
#include "server/predict/serving/inference_statistics.h"
#include "server/rpc/auth.h"
#include "server/rpc/final_findings.h"
#include "server/telemetry/server_metrics.h"

namespace chainfleet {

// The folder of ServiceParts::backup_copies in a data directory.
inline std::string BackupFolder(const std::string& data_directory) { return data_directory + "/backups"; }
// AccessService.Restore takes a backup into the folder. When its objects are stored, its state is in the file, and the
// process gets the signal.
inline std::string RestoreFolder(const std::string& data_directory) { return data_directory + "/restore"; }
inline std::string RestoredState(const std::string& data_directory) { return data_directory + "/state.db.restored"; }
inline constexpr int kBackupCame = SIGUSR1;

// All members outlive the services.
struct ServiceParts {
  const Clock* clock = nullptr;
  Executor* executor = nullptr;
  Executor* timers = nullptr;  // for tasks that never block; `executor` may be busy with disk and S3
  StateStore* state = nullptr;
  BlobStore* blobs = nullptr;
  BlobStore* backup_copies = nullptr;  // files of AccessService.Backup
  GarbageCollector* garbage = nullptr;
  StateWriter* writer = nullptr;
  AccessTokens* tokens = nullptr;
  Catalog* catalog = nullptr;
  Versions* versions = nullptr;
  Dispatcher* dispatcher = nullptr;
  EventLog* events = nullptr;
  UploadSigner* uploads = nullptr;  // null: objects are uploaded through the server
  TraceTable* traces = nullptr;
  FinalFindings* findings = nullptr;
  const Authenticator* auth = nullptr;
  const WorkerAdmission* admission = nullptr;
  AuditLog* audit = nullptr;
  ServerMetrics* metrics = nullptr;
  InferenceStatistics* statistics = nullptr;
  const DatasetRoots* dataset_roots = nullptr;
  DatasetReads* dataset_reads = nullptr;                    // reads of data sets named by URI
  ObjectChecks* object_checks = nullptr;                    // checks before commits
  const FairBudget* upload_budget = nullptr;                // for data sets and models
  const FairBudget* object_budget = nullptr;                // for objects that workers put
  const ByteBudget* reply_budget = nullptr;                 // for predictions, until clients have read them
  RngKey request_ids;                                       // for calls whose client gives no id
  absl::Duration longest_call = limits::kEvaluateDeadline;  // for calls that read draws
  AccessOptions access;
  std::string data_directory;
  std::string state_address;  // path of the SQLite file or PostgreSQL URI, which may have a password
  std::shared_ptr<DatabasePassword> state_password;  // null: that of the URI, or of libpq's variables and files
  absl::Time started_at;

  // The parts that an adapter of a lower floor sees.
  operator DrawCatalogParts() const {
    return {.executor = executor,
            .state = state,
            .writer = writer,
            .catalog = catalog,
            .versions = versions,
            .dispatcher = dispatcher,
            .count_corrupt_draw = [metrics = metrics] { metrics->CountCorruptDraw(); }};
  }
};

// Returns the id of a job of the caller's tenant. UNAUTHENTICATED, NOT_FOUND.
inline absl::StatusOr<std::string> ResolveJob(const ServiceParts& parts, const grpc::CallbackServerContext& context,
                                              const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string tenant, parts.auth->TenantOf(context));
  return parts.dispatcher->ResolveJob(tenant, name);
}

// Resolves the draws of a job or an alias of the caller's tenant. `version` 0 means the newest. An alias has its own
// version; any other version with it is INVALID_ARGUMENT. UNAUTHENTICATED, NOT_FOUND.
inline absl::StatusOr<NamedDraws> ResolveDraws(const ServiceParts& parts, const grpc::CallbackServerContext& context,
                                               const std::string& name, int64_t version) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string tenant, parts.auth->TenantOf(context));
  CHAINFLEET_ASSIGN_OR_RETURN(NamedDraws draws, parts.dispatcher->ResolveDraws(tenant, name));
  if (draws.version == nullptr || version == 0 || version == draws.version->number) return draws;
  return InvalidFields({{"version", absl::StrCat("alias ", name, " means version ", draws.version->number, " of job ",
                                                 draws.job.id, ": ask the job for version ", version)}});
}

// FAILED_PRECONDITION / MODULES_OFF.
inline absl::Status CheckModulesAllowed(const ServiceParts& parts) {
  if (parts.access.allow_modules) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError(
          "this server takes no TorchScript models, which are programs that its workers would run: export the "
          "network with torch.export.save, or start the server with --allow-modules"),
      "MODULES_OFF");
}

// Returns the session of a worker that has joined, or else the one that its request names; nullopt if it names none,
// which only a server without tokens accepts. PERMISSION_DENIED / SESSION_REQUIRED.
template <typename Request>
absl::StatusOr<std::optional<WorkerIdentity>> SessionOf(const ServiceParts& parts, const Principal& caller,
                                                        const Request& request) {
  const auto& session = request.session();
  if (caller.worker) return WorkerIdentity{caller.worker->claims().worker, caller.worker->claims().incarnation};
  if (!session.worker().empty()) return WorkerIdentity{session.worker(), session.incarnation()};
  if (!parts.auth->wants_tokens()) return std::nullopt;
  return WithReason(
      absl::PermissionDeniedError("the request names no session: upgrade the worker to the server's release"),
      "SESSION_REQUIRED");
}

// Returns how the worker was let in. All members are empty if it has not joined, which only a server without tokens
// accepts.
inline Admission AdmissionOf(const Principal& caller) {
  return caller.worker ? Admission{caller.worker->claims().token, caller.worker->claims().tenant} : Admission{};
}

// Returns the name under which a FairBudget counts the bytes that a worker sends. The workers of one tenant are one
// holder, because a tenant's token lets in any number of them. No id of a worker has a "/".
inline std::string HolderOf(const Admission& admission, const std::string& worker) {
  return admission.IsOfAllTenants() ? worker : absl::StrCat("tenant/", admission.tenant);
}

// PERMISSION_DENIED / NOT_YOUR_SESSION: the caller joined as another process than `speaker`.
inline absl::Status CheckSpeaker(const Principal& caller, const WorkerIdentity& speaker) {
  if (!caller.worker) return absl::OkStatus();
  const WorkerClaims& own = caller.worker->claims();
  if (own.worker == speaker.worker && own.incarnation == speaker.incarnation) return absl::OkStatus();
  return WithReason(absl::PermissionDeniedError(
                        absl::StrCat("worker ", own.worker, " cannot speak for another process, ", speaker.worker)),
                    "NOT_YOUR_SESSION");
}

}  // namespace chainfleet
