#include "tests/support/forgetful_disk.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::optional<std::shared_ptr<const std::string>> Find(
    const std::map<std::string, std::shared_ptr<const std::string>>& entries, const std::string& path) {
  const auto found = entries.find(path);
  return found == entries.end() ? std::nullopt : std::optional(found->second);
}

absl::Status Missing(const std::string& path) { return absl::NotFoundError(absl::StrCat("no ", path)); }

}  // namespace

class ForgetfulDisk::View final : public FileSystem {
 public:
  View(ForgetfulDisk* disk, std::function<bool()> alive) : disk_(*disk), alive_(std::move(alive)) {}

  absl::Status WriteSynced(const std::string& path, const ByteSource& content) override {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, content.ReadAll());
    CHAINFLEET_RETURN_IF_ERROR(BeginChange());
    if (!IsFolder(FolderOf(path))) return Missing(FolderOf(path));
    disk_.current_[path] = Bytes("");
    if (disk_.full_) return WithReason(absl::ResourceExhaustedError("no space for " + path), "DISK_FULL");
    disk_.current_[path] = Bytes(bytes.substr(0, bytes.size() / 2));
    CHAINFLEET_RETURN_IF_ERROR(BeginChange());
    disk_.current_[path] = Bytes(bytes);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Read(const std::string& path) const override { return ReadRange(path, 0, INT64_MAX); }
  absl::StatusOr<std::string> ReadRange(const std::string& path, int64_t offset, int64_t length) const override {
    CHAINFLEET_RETURN_IF_ERROR(CheckAlive());
    const auto found = disk_.current_.find(path);
    if (found == disk_.current_.end() || found->second == nullptr) return Missing(path);
    const size_t begin = std::min(static_cast<size_t>(offset), found->second->size());
    return found->second->substr(begin, static_cast<size_t>(length));
  }
  absl::StatusOr<int64_t> SizeBytes(const std::string& path) const override {
    if (IsFolder(path)) return 0;
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, Read(path));
    return static_cast<int64_t>(bytes.size());
  }
  absl::Status RenameNew(const std::string& from, const std::string& to) override {
    if (disk_.current_.contains(to)) return absl::AlreadyExistsError(to);
    return Rename(from, to);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    CHAINFLEET_RETURN_IF_ERROR(BeginChange());
    const auto found = disk_.current_.find(from);
    if (found == disk_.current_.end()) return Missing(from);
    if (!IsFolder(FolderOf(to))) return Missing(FolderOf(to));
    disk_.current_[to] = found->second;
    disk_.current_.erase(from);
    return absl::OkStatus();
  }
  absl::Status SyncFolder(const std::string& path) override {
    CHAINFLEET_RETURN_IF_ERROR(BeginChange());
    if (!IsFolder(path)) return Missing(path);
    std::erase_if(disk_.durable_, [&](const auto& entry) { return FolderOf(entry.first) == path; });
    for (auto i = disk_.current_.lower_bound(path + "/"); Below(i, path); ++i) {
      if (FolderOf(i->first) == path) disk_.durable_.insert(*i);
    }
    return absl::OkStatus();
  }
  absl::Status CreateFolders(const std::string& path) override {
    CHAINFLEET_RETURN_IF_ERROR(BeginChange());
    for (std::string folder = path; !folder.empty() && !IsFolder(folder); folder = FolderOf(folder)) {
      disk_.current_[folder] = nullptr;
    }
    return absl::OkStatus();
  }
  absl::Status Remove(const std::string& path) override {
    CHAINFLEET_RETURN_IF_ERROR(BeginChange());
    return disk_.current_.erase(path) > 0 ? absl::OkStatus() : Missing(path);
  }
  absl::Status RemoveEmptyFolder(const std::string& path) override {
    CHAINFLEET_RETURN_IF_ERROR(BeginChange());
    if (!IsFolder(path)) return Missing(path);
    if (Below(disk_.current_.lower_bound(path + "/"), path)) return absl::InternalError("not empty: " + path);
    disk_.current_.erase(path);
    return absl::OkStatus();
  }
  absl::Status VisitFiles(const std::string& folder, const FileVisitor& visit) const override {
    CHAINFLEET_RETURN_IF_ERROR(CheckAlive());
    const std::string top = folder.ends_with('/') ? folder.substr(0, folder.size() - 1) : folder;
    for (auto i = disk_.current_.lower_bound(top + "/"); Below(i, top); ++i) {
      if (i->second != nullptr) CHAINFLEET_RETURN_IF_ERROR(visit(i->first.substr(top.size() + 1)));
    }
    return absl::OkStatus();
  }

 private:
  static std::shared_ptr<const std::string> Bytes(std::string bytes) {
    return std::make_shared<const std::string>(std::move(bytes));
  }
  bool IsFolder(const std::string& path) const {
    const auto found = disk_.current_.find(path);
    return found != disk_.current_.end() && found->second == nullptr;
  }
  bool Below(Entries::const_iterator i, const std::string& folder) const {
    return i != disk_.current_.end() && i->first.starts_with(folder + "/");
  }
  absl::Status CheckAlive() const {
    return alive_() ? absl::OkStatus() : absl::UnavailableError("the process is dead");
  }
  absl::Status BeginChange() {
    if (alive_()) disk_.before_change_();
    return CheckAlive();
  }

  ForgetfulDisk& disk_;
  const std::function<bool()> alive_;
};

std::unique_ptr<FileSystem> ForgetfulDisk::Mount(std::function<bool()> alive) {
  return std::make_unique<View>(this, std::move(alive));
}

void ForgetfulDisk::LosePower() {
  std::set<std::string> paths;
  for (const Entries* entries : {&current_, &durable_}) {
    for (const auto& [path, bytes] : *entries) paths.insert(path);
  }
  Entries survived;
  for (const std::string& path : paths) {
    const auto now = Find(current_, path), before = Find(durable_, path);
    const auto kept = now == before || random_() % 2 == 0 ? now : before;
    // Folders come before their content.
    const bool reachable = survived.empty() || survived.contains(FolderOf(path));
    if (kept && reachable) survived.emplace(path, *kept);
  }
  durable_ = current_ = std::move(survived);
}

}  // namespace chainfleet
