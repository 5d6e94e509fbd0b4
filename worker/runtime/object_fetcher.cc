#include "worker/runtime/object_fetcher.h"

#include <functional>
#include <utility>

#include "core/base/backoff.h"
#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {

struct ObjectFetcher::Attempt {
  Attempt(BlobRef ref_in, bool on_disk_in, Done<std::shared_ptr<const std::string>> done_in, RngKey jitter)
      : ref(std::move(ref_in)), on_disk(on_disk_in), done(std::move(done_in)), backoff(jitter) {}
  const BlobRef ref;
  const bool on_disk;
  const Done<std::shared_ptr<const std::string>> done;
  Backoff backoff;
};

ObjectFetcher::ObjectFetcher(CoordinatorPort* port, Executor* executor, RngKey jitter_key, DiskCache disk)
    : port_(port), executor_(executor), jitter_key_(jitter_key), disk_(std::move(disk)) {
  if (disk_.files == nullptr) return;
  int64_t bytes = 0;
  if (const auto files = disk_.files->ListFiles(disk_.folder); files.ok()) {
    for (const std::string& file : *files) bytes += disk_.files->SizeBytes(disk_.folder + "/" + file).value_or(0);
  }
  MutexLock lock(&mutex_);
  disk_bytes_ = bytes;
}

void ObjectFetcher::Fetch(const BlobRef& ref, bool on_disk, Done<std::shared_ptr<const std::string>> done) {
  auto attempt = std::make_shared<Attempt>(ref, on_disk && disk_.files != nullptr, std::move(done),
                                           Fold(jitter_key_, std::hash<std::string>()(ref.sha256)));
  executor_->Schedule([this, attempt] {
    if (attempt->on_disk) {
      if (auto bytes = ReadFromDisk(attempt->ref)) return attempt->done(std::move(bytes));
    }
    Get(attempt);
  });
}

void ObjectFetcher::Get(const std::shared_ptr<Attempt>& attempt) {
  port_->GetBlob(attempt->ref, [this, attempt](absl::StatusOr<std::shared_ptr<const std::string>> bytes) {
    // Do not hash megabytes on the thread that reads the network.
    executor_->Schedule([this, attempt, bytes = std::move(bytes)] { OnBytes(attempt, bytes); });
  });
}

void ObjectFetcher::OnBytes(const std::shared_ptr<Attempt>& attempt,
                            absl::StatusOr<std::shared_ptr<const std::string>> bytes) {
  const absl::Status& status = bytes.status();
  // RESOURCE_EXHAUSTED: the server has no room for the call now.
  const bool full = absl::IsResourceExhausted(status);
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || full) {
    if (attempt->backoff.failures() + 1 < limits::kUploadAttempts) {
      executor_->ScheduleAfter(attempt->backoff.Next(), [this, attempt] { Get(attempt); });
      return;
    }
    if (full) return attempt->done(absl::UnavailableError(status.message()));
  }
  if (!bytes.ok()) return attempt->done(Annotate(status, "object " + attempt->ref.name));
  if (Sha256Hex(**bytes) != attempt->ref.sha256) {
    return attempt->done(absl::DataLossError("object " + attempt->ref.name + " does not match its digest"));
  }
  if (attempt->on_disk) WriteToDisk(attempt->ref, **bytes);
  attempt->done(std::move(bytes));
}

std::string ObjectFetcher::PathOnDisk(const BlobRef& ref) const {
  if (disk_.files == nullptr) return "";
  std::string path = disk_.folder + "/" + ref.sha256;
  return disk_.files->SizeBytes(path).value_or(-1) == ref.size_bytes ? path : "";
}

std::shared_ptr<const std::string> ObjectFetcher::ReadFromDisk(const BlobRef& ref) {
  auto bytes = disk_.files->Read(disk_.folder + "/" + ref.sha256);
  if (!bytes.ok() || Sha256Hex(*bytes) != ref.sha256) return nullptr;
  return std::make_shared<const std::string>(*std::move(bytes));
}

void ObjectFetcher::WriteToDisk(const BlobRef& ref, const std::string& bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  {
    MutexLock lock(&mutex_);
    if (disk_bytes_ + size > limits::kDiskCacheBytes) return;
    disk_bytes_ += size;
  }
  // A torn file is detected by its digest at the next read, so a plain write under the final name is enough.
  absl::Status status = disk_.files->CreateFolders(disk_.folder);
  if (status.ok()) status = disk_.files->WriteSynced(disk_.folder + "/" + ref.sha256, bytes);
  if (status.ok()) return;
  Log(LogLevel::kWarning, "data set not cached on disk", {{"error", status.ToString()}});
  disk_.files->Remove(disk_.folder + "/" + ref.sha256).IgnoreError();  // frees the space of a partial file
  MutexLock lock(&mutex_);
  disk_bytes_ -= size;
}

}  // namespace chainfleet
