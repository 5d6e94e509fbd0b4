#include "server/control/backup_objects.h"

#include <utility>
#include <vector>

#include "core/base/shared_work.h"
#include "core/base/thread_pool.h"

namespace chainfleet {
namespace {

constexpr size_t kObjectsAtOnce = 256;
constexpr int kCalls = 32;  // at a time: an object store takes its time for each object

}  // namespace

absl::StatusOr<BackupManifest> PutBackupObjects(const std::string& folder, BlobStore* blobs,
                                                const std::function<bool()>& goes_on) {
  ThreadPool threads(kCalls);
  std::vector<std::pair<BlobRef, std::string>> batch;  // checked objects and their paths
  const auto put = [&] {
    std::vector<absl::Status> results(batch.size());
    ShareWork(&threads, kCalls, std::ssize(batch), [&](int64_t i) {
      const auto& [object, path] = batch[i];
      results[i] = PutContentAddressed(blobs, object.name, ByteSource::InFile(path, object.size_bytes));
    });
    batch.clear();
    absl::Status status;
    for (const absl::Status& result : results) status.Update(result);
    return status;
  };
  CHAINFLEET_ASSIGN_OR_RETURN(BackupManifest manifest,
                              ReadBackup(folder, [&](const BlobRef& object, const std::string& path) {
                                if (!goes_on()) return absl::CancelledError("nobody waits for the objects any more");
                                batch.emplace_back(object, path);
                                return batch.size() < kObjectsAtOnce ? absl::OkStatus() : put();
                              }));
  CHAINFLEET_RETURN_IF_ERROR(put());
  return manifest;
}

}  // namespace chainfleet
