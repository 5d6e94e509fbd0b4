// The audit log: who changed what, and who was refused. One JSON object a line, in files of the data directory.
//
// Each line has "seq", which counts from 1, "at" in RFC 3339, the fields that the caller gives, and "previous": the
// SHA-256 of the line before, or 64 zeros. Whoever changes, removes or inserts a line must change all later ones, and
// so the digest of the newest line, which an auditor keeps elsewhere. core/store/audit_log/audit_chain.h checks that.
//
// A line is in the file before the call that it tells of is answered, so a killed server loses none. A power cut may
// lose those that the system has not written yet.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace chainfleet {

// Returns the names of a log's files in `folder` by number, the oldest first. Other files are left out.
absl::StatusOr<std::map<int64_t, std::string>> ListAuditFiles(const std::string& folder);

// Thread-safe.
class AuditLog {
 public:
  struct Options {
    int64_t file_bytes = int64_t{64} << 20;  // from which on the next line begins a new file
    int files = 16;                          // kept; the oldest is deleted
    std::function<void()> on_failure;        // runs for each line that could not be written; may be null
  };
  // Continues the log in `folder`, which is created if it is missing. What a crash left of a line is removed.
  // FAILED_PRECONDITION / AUDIT_LOG: the newest line is none of this log.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& folder, const Clock* clock, Options options);
  ~AuditLog();

  // Appends a line. A value of more than 300 bytes is cut. If the disk refuses it, an error is logged.
  void Append(const std::vector<LogField>& fields);

  struct Page {
    std::vector<std::string> lines;  // in order; 256 KiB at most
    std::string next;                // where the next page begins; empty at the end
  };
  // `from`: empty for the oldest line, else Page::next. `tenant`: only lines whose field "tenant" is this name, so a
  // page before the last may be empty. INVALID_ARGUMENT / BAD_PAGE_TOKEN, also for lines that are deleted by now.
  absl::StatusOr<Page> Read(const std::string& from, const std::optional<std::string>& tenant = std::nullopt) const;

 private:
  AuditLog(std::string folder, const Clock* clock, Options options);
  absl::Status Continue() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OpenFile(int64_t number) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Write(const std::string& line) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string PathOf(int64_t number) const;

  const std::string folder_;
  const Clock* const clock_;
  const Options options_;
  mutable Mutex mutex_;
  int descriptor_ CHAINFLEET_GUARDED_BY(mutex_) = -1;
  int64_t oldest_ CHAINFLEET_GUARDED_BY(mutex_) = 1;  // numbers of files
  int64_t newest_ CHAINFLEET_GUARDED_BY(mutex_) = 1;
  int64_t size_ CHAINFLEET_GUARDED_BY(mutex_) = 0;  // bytes of the newest file
  int64_t seq_ CHAINFLEET_GUARDED_BY(mutex_) = 0;   // number of the newest line
  std::string digest_ CHAINFLEET_GUARDED_BY(mutex_);
  absl::Duration told_ CHAINFLEET_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

}  // namespace chainfleet
