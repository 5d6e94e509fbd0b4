#include "core/store/blob_store/file_blob_store.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

constexpr char kTempFolder[] = ".tmp";  // no object's name starts with a dot

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

class FileBlobStore::FolderSync {
 public:
  absl::Status Run(FileSystem* file_system, const std::string& path) {
    mutex_.Lock();
    // A sync under way may have begun before our rename: only the next one is sure to hold it.
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
  // One sync and all that wait for it; constant once done.
  struct Round {
    bool done = false;
    absl::Status status;
  };

  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Round> next_ CHAINFLEET_GUARDED_BY(mutex_);  // has not begun
  bool running_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

FileBlobStore::FileBlobStore(FileSystem* file_system, std::string folder)
    : file_system_(file_system), folder_(std::move(folder)) {}

absl::StatusOr<std::unique_ptr<FileBlobStore>> FileBlobStore::Open(FileSystem* file_system, const std::string& folder) {
  std::unique_ptr<FileBlobStore> store(new FileBlobStore(file_system, folder));
  const std::string temp = absl::StrCat(folder, "/", kTempFolder);
  CHAINFLEET_RETURN_IF_ERROR(file_system->CreateFolders(temp));
  CHAINFLEET_RETURN_IF_ERROR(file_system->SyncFolder(FolderOf(folder)));  // of which our own folder is an entry
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

absl::Status FileBlobStore::EnsureFolder(const std::string& path) {
  {
    MutexLock lock(&mutex_);
    if (folders_.contains(path)) return absl::OkStatus();
  }
  CHAINFLEET_RETURN_IF_ERROR(file_system_->CreateFolders(path));
  // A new folder is an entry of each folder above it, up to ours.
  for (std::string parent = path; parent.size() > folder_.size();) {
    parent = FolderOf(parent);
    CHAINFLEET_RETURN_IF_ERROR(file_system_->SyncFolder(parent));
  }
  MutexLock lock(&mutex_);
  folders_.try_emplace(path, std::make_shared<FolderSync>());
  return absl::OkStatus();
}

absl::Status FileBlobStore::SyncFolder(const std::string& path) {
  std::shared_ptr<FolderSync> sync;
  {
    MutexLock lock(&mutex_);
    sync = folders_.at(path);
  }
  return sync->Run(file_system_, path);
}

absl::Status FileBlobStore::Put(const std::string& name, const std::string& bytes) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  CHAINFLEET_RETURN_IF_ERROR(EnsureFolder(FolderOf(path)));
  const std::string temp = NextTemp();
  absl::Status status = file_system_->WriteSynced(temp, bytes);
  if (status.ok()) status = file_system_->RenameNew(temp, path);
  if (!status.ok()) {
    (void)file_system_->Remove(temp);
    if (!absl::IsAlreadyExists(status)) return status;
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string present, file_system_->Read(path));
    if (present != bytes) return absl::AlreadyExistsError(absl::StrCat("object ", name, " exists with other bytes"));
  }
  return SyncFolder(FolderOf(path));
}

absl::Status FileBlobStore::Replace(const std::string& name, const std::string& bytes) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  CHAINFLEET_RETURN_IF_ERROR(EnsureFolder(FolderOf(path)));
  const std::string temp = NextTemp();
  absl::Status status = file_system_->WriteSynced(temp, bytes);
  if (status.ok()) status = file_system_->Rename(temp, path);
  if (status.ok()) return SyncFolder(FolderOf(path));
  (void)file_system_->Remove(temp);
  return status;
}

absl::StatusOr<std::string> FileBlobStore::Get(const std::string& name) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  return file_system_->Read(path);
}

absl::StatusOr<std::string> FileBlobStore::GetRange(const std::string& name, int64_t offset, int64_t length) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  return file_system_->ReadRange(path, offset, length);
}

absl::StatusOr<int64_t> FileBlobStore::SizeBytes(const std::string& name) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  return file_system_->SizeBytes(path);
}

absl::StatusOr<std::vector<std::string>> FileBlobStore::List(const std::string& prefix) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                              file_system_->ListFiles(absl::StrCat(folder_, "/", prefix)));
  std::vector<std::string> names;
  for (const std::string& file : files) {
    std::string name = prefix + file;
    if (!name.starts_with('.')) names.push_back(std::move(name));
  }
  return names;
}

absl::Status FileBlobStore::ListPages(const std::string& prefix, const PageVisitor& visit) const {
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
  const absl::Status status = file_system_->Remove(path);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace chainfleet
