#include "core/store/blob_store/file_blob_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace chainfleet {
namespace {

constexpr char kTempFolder[] = ".tmp";  // no object's name starts with a dot
constexpr int kFolderAttempts = 3;

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

class FileBlobStore::FolderSync {
 public:
  absl::Status Run(FileSystem* file_system, const std::string& path) {
    mutex_.Lock();
    // A running sync may have begun before the caller's rename. Only the next one is sure to include it.
    if (next_ == nullptr) next_ = std::make_shared<Round>();
    const std::shared_ptr<Round> round = next_;
    while (!round->done && running_) changed_.Wait(&mutex_);
    if (!round->done) {
      running_ = true;
      next_ = nullptr;
      mutex_.Unlock();
      const absl::Status status = file_system->SyncFolder(path);
      mutex_.Lock();
      round->status = status;
      round->done = true;
      running_ = false;
      changed_.SignalAll();
    }
    mutex_.Unlock();
    return round->status;
  }

 private:
  // One sync and the calls that wait for it; constant once done.
  struct Round {
    bool done = false;
    absl::Status status;
  };

  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Round> next_ CHAINFLEET_GUARDED_BY(mutex_);  // not started yet
  bool running_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

FileBlobStore::FileBlobStore(FileSystem* file_system, std::string folder)
    : file_system_(file_system), folder_(std::move(folder)) {}

absl::StatusOr<std::unique_ptr<FileBlobStore>> FileBlobStore::Open(FileSystem* file_system, const std::string& folder) {
  std::unique_ptr<FileBlobStore> store(new FileBlobStore(file_system, folder));
  const std::string temp = absl::StrCat(folder, "/", kTempFolder);
  CHAINFLEET_RETURN_IF_ERROR(file_system->CreateFolders(temp));
  CHAINFLEET_RETURN_IF_ERROR(file_system->SyncFolder(FolderOf(folder)));  // persists the entry of the store's folder
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> leftovers, file_system->ListFiles(temp));
  for (const std::string& file : leftovers)
    CHAINFLEET_RETURN_IF_ERROR(file_system->Remove(absl::StrCat(temp, "/", file)));
  return store;
}

absl::StatusOr<std::string> FileBlobStore::PathOf(const std::string& name) const {
  CHAINFLEET_RETURN_IF_ERROR(CheckBlobName(name));
  return absl::StrCat(folder_, "/", name);
}

std::string FileBlobStore::NextTemp() { return absl::StrCat(folder_, "/", kTempFolder, "/", next_temp_.fetch_add(1)); }

absl::Status FileBlobStore::CheckFolder() const {
  const absl::Status status = file_system_->SizeBytes(absl::StrCat(folder_, "/", kTempFolder)).status();
  if (!absl::IsNotFound(status)) return status;
  return WithReason(
      absl::UnavailableError(absl::StrCat("the folder of objects ", folder_, " is gone: mount it or put it back")),
      kStoreFault);
}

absl::Status FileBlobStore::Judge(const absl::Status& status) const {
  // The texts reach callers, who must not learn where the server keeps its data.
  const std::string said = absl::StrReplaceAll(status.message(), {{folder_ + "/", ""}});
  if (absl::IsPermissionDenied(status)) return WithReason(absl::UnavailableError(said), kStoreFault);
  if (!absl::IsNotFound(status)) return status;
  const absl::Status folder = CheckFolder();
  return folder.ok() ? absl::NotFoundError(said) : folder;
}

absl::StatusOr<std::shared_ptr<FileBlobStore::FolderSync>> FileBlobStore::EnsureFolder(const std::string& path) {
  {
    MutexLock lock(&mutex_);
    if (const auto known = folders_.find(path); known != folders_.end()) return known->second;
  }
  CHAINFLEET_RETURN_IF_ERROR(CheckFolder());  // never create anything below a bare mount point
  CHAINFLEET_RETURN_IF_ERROR(file_system_->CreateFolders(path));
  // Sync every folder above the new one, up to the store's folder: each has a new entry.
  for (std::string parent = path; parent.size() > folder_.size();) {
    parent = FolderOf(parent);
    CHAINFLEET_RETURN_IF_ERROR(file_system_->SyncFolder(parent));
  }
  MutexLock lock(&mutex_);
  return folders_.try_emplace(path, std::make_shared<FolderSync>()).first->second;
}

absl::Status FileBlobStore::Write(const std::string& path, const ByteSource& content,
                                  absl::Status (FileSystem::*rename)(const std::string&, const std::string&)) {
  const std::string folder = FolderOf(path), temp = NextTemp();
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<std::shared_ptr<FolderSync>> sync = EnsureFolder(folder);
    absl::Status status = sync.status();
    if (status.ok()) status = file_system_->WriteSynced(temp, content);
    if (status.ok()) status = (file_system_->*rename)(temp, path);
    if (status.ok()) return (*sync)->Run(file_system_, folder);
    (void)file_system_->Remove(temp);
    if (!absl::IsNotFound(status)) return Judge(status);
    CHAINFLEET_RETURN_IF_ERROR(CheckFolder());
    // Delete may have removed the empty folder since EnsureFolder.
    if (attempt == kFolderAttempts) return WithReason(absl::UnavailableError(status.message()), kStoreFault);
    MutexLock lock(&mutex_);
    folders_.erase(folder);
  }
}

absl::Status FileBlobStore::Put(const std::string& name, const ByteSource& content) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  const absl::Status status = Write(path, content, &FileSystem::RenameNew);
  if (!absl::IsAlreadyExists(status)) return status;
  // The process that wrote the object may have died before its sync. Sync before the comparison: EncryptedBlobStore
  // accepts an object with other bytes if their plaintext is the same.
  CHAINFLEET_ASSIGN_OR_RETURN(const std::shared_ptr<FolderSync> sync, EnsureFolder(FolderOf(path)));
  CHAINFLEET_RETURN_IF_ERROR(sync->Run(file_system_, FolderOf(path)));
  return CompareObject(*this, name, content);
}

absl::Status FileBlobStore::Replace(const std::string& name, const ByteSource& content) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  return Write(path, content, &FileSystem::Rename);
}

absl::StatusOr<std::string> FileBlobStore::Get(const std::string& name) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  absl::StatusOr<std::string> bytes = file_system_->Read(path);
  if (!bytes.ok()) return Judge(bytes.status());
  return bytes;
}

absl::StatusOr<std::string> FileBlobStore::GetRange(const std::string& name, int64_t offset, int64_t length) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  absl::StatusOr<std::string> bytes = file_system_->ReadRange(path, offset, length);
  if (!bytes.ok()) return Judge(bytes.status());
  return bytes;
}

absl::StatusOr<int64_t> FileBlobStore::SizeBytes(const std::string& name) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  const absl::StatusOr<int64_t> size = file_system_->SizeBytes(path);
  if (!size.ok()) return Judge(size.status());
  return size;
}

absl::StatusOr<std::vector<std::string>> FileBlobStore::List(const std::string& prefix) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                              file_system_->ListFiles(absl::StrCat(folder_, "/", prefix)));
  std::vector<std::string> names;
  for (const std::string& file : files) {
    std::string name = prefix + file;
    if (!name.starts_with('.')) names.push_back(std::move(name));
  }
  if (names.empty()) CHAINFLEET_RETURN_IF_ERROR(CheckFolder());
  return names;
}

absl::Status FileBlobStore::ListPages(const std::string& prefix, const PageVisitor& visit) const {
  CHAINFLEET_RETURN_IF_ERROR(CheckFolder());
  std::vector<std::string> page;
  CHAINFLEET_RETURN_IF_ERROR(
      file_system_->VisitFiles(absl::StrCat(folder_, "/", prefix), [&](const std::string& file) -> absl::Status {
        std::string name = prefix + file;
        if (!name.starts_with('.')) page.push_back(std::move(name));
        if (page.size() < kListPage) return absl::OkStatus();
        return visit(std::exchange(page, {}));
      }));
  return page.empty() ? absl::OkStatus() : visit(page);
}

absl::Status FileBlobStore::Delete(const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  const absl::Status status = Judge(file_system_->Remove(path));
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  // Runs also for a missing object: the process that removed it may have died before it removed the folders.
  for (std::string folder = FolderOf(path); folder.size() > folder_.size(); folder = FolderOf(folder)) {
    const absl::Status removed = file_system_->RemoveEmptyFolder(folder);
    if (!removed.ok() && !absl::IsNotFound(removed)) break;  // the folder has other objects
    MutexLock lock(&mutex_);
    folders_.erase(folder);
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
