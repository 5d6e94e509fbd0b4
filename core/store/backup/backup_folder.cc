#include "core/store/backup/backup_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/file_system.h"
#include "core/base/limits.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

constexpr int64_t kFormat = 1;
constexpr char kManifest[] = "manifest.json";
constexpr int64_t kPartBytes = 8 * limits::kMiB;
constexpr size_t kDigestCharacters = 64;

using Json = nlohmann::ordered_json;

absl::Status Damaged(const std::string& path, const std::string& why) {
  return absl::DataLossError(absl::StrCat("the backup is damaged: ", path, " ", why));
}

bool IsSafe(const std::string& name) {
  if (name.empty()) return false;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(name, '/'))) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

bool IsOurs(const std::string& file) {
  return absl::StartsWith(file, "state-") || absl::StartsWith(file, "objects-") || absl::StartsWith(file, "objects/");
}

absl::Status SyncDisk(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && syncfs(descriptor) == 0;
  if (descriptor >= 0) close(descriptor);
  return synced ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", folder, " to its disk"));
}

Json Render(const BlobRef& file) { return {{"file", file.name}, {"bytes", file.size_bytes}, {"sha256", file.sha256}}; }

// Throws nlohmann's exceptions.
BlobRef Parse(const Json& file) {
  BlobRef ref{file.at("file"), file.at("bytes"), file.at("sha256")};
  if (!IsSafe(ref.name) || absl::StrContains(ref.name, '/')) throw Json::other_error::create(500, "file name", &file);
  return ref;
}

}  // namespace

absl::StatusOr<BackupManifest> ReadBackupManifest(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kManifest);
  const absl::StatusOr<std::string> text = RealFileSystem()->Read(path);
  if (absl::IsNotFound(text.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " has no finished backup: there is no ", kManifest, "; repeat `chainfleet backup`"));
  }
  CHAINFLEET_RETURN_IF_ERROR(text.status());
  try {
    const Json json = Json::parse(*text);
    if (const int64_t format = json.at("format"); format != kFormat) {
      return absl::FailedPreconditionError(absl::StrCat(path, ": the backup has format ", format,
                                                        ", this program knows ", kFormat, ": use a newer release"));
    }
    return BackupManifest{.server_version = json.at("server_version"),
                          .engine = json.at("engine"),
                          .incarnation = json.at("incarnation"),
                          .created_at = json.at("created_at"),
                          .state = Parse(json.at("state")),
                          .list = Parse(json.at("list")),
                          .objects = json.at("objects"),
                          .object_bytes = json.at("object_bytes")};
  } catch (const Json::exception& error) {
    return Damaged(path, absl::StrCat("cannot be read: ", error.what()));
  }
}

absl::Status FinishBackup(const std::string& folder, const BackupManifest& manifest) {
  const Json json = {{"format", kFormat},
                     {"server_version", manifest.server_version},
                     {"engine", manifest.engine},
                     {"incarnation", manifest.incarnation},
                     {"created_at", manifest.created_at},
                     {"state", Render(manifest.state)},
                     {"list", Render(manifest.list)},
                     {"objects", manifest.objects},
                     {"object_bytes", manifest.object_bytes}};
  FileSystem* const disk = RealFileSystem();
  const std::string path = absl::StrCat(folder, "/", kManifest), text = json.dump(2) + "\n";
  CHAINFLEET_RETURN_IF_ERROR(SyncDisk(folder));
  CHAINFLEET_RETURN_IF_ERROR(disk->WriteSynced(path + ".new", text));
  CHAINFLEET_RETURN_IF_ERROR(disk->Rename(path + ".new", path));
  CHAINFLEET_RETURN_IF_ERROR(disk->SyncFolder(folder));
  std::set<std::string> named = {manifest.state.name, manifest.list.name, kManifest, "lock"};
  CHAINFLEET_RETURN_IF_ERROR(VisitBackupList(absl::StrCat(folder, "/", manifest.list.name), [&](const BlobRef& object) {
    named.insert("objects/" + object.name);
    return absl::OkStatus();
  }));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> files, disk->ListFiles(folder));
  for (const std::string& file : files) {
    if (!named.contains(file) && IsOurs(file)) CHAINFLEET_RETURN_IF_ERROR(disk->Remove(folder + "/" + file));
  }
  return absl::OkStatus();
}

absl::StatusOr<BackupTotals> WriteBackupList(const std::string& path,
                                             const std::function<absl::Status(const BackupVisitor&)>& list) {
  std::ofstream file(path);
  BackupTotals totals;
  CHAINFLEET_RETURN_IF_ERROR(list([&](const BlobRef& object) {
    file << object.sha256 << " " << object.size_bytes << " " << object.name << "\n";
    ++totals.objects;
    totals.bytes += object.size_bytes;
    return absl::OkStatus();
  }));
  if (!file.flush()) return absl::FailedPreconditionError(absl::StrCat("cannot write ", path, ": is its disk full?"));
  return totals;
}

absl::Status VisitBackupList(const std::string& path, const BackupVisitor& visit) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    BlobRef object;
    if (words.size() != 3 || words[0].size() != kDigestCharacters || !absl::SimpleAtoi(words[1], &object.size_bytes) ||
        !IsSafe(words[2])) {
      return Damaged(path, absl::StrCat("has no object in the line \"", line, "\""));
    }
    object.sha256 = words[0];
    object.name = words[2];
    CHAINFLEET_RETURN_IF_ERROR(visit(object));
  }
  return file.eof() ? absl::OkStatus() : Damaged(path, "cannot be read");
}

absl::StatusOr<std::string> BackupFilePath(const std::string& folder, const std::string& file) {
  if (IsSafe(file) && (IsOurs(file) || file == kManifest)) return absl::StrCat(folder, "/", file);
  return absl::InvalidArgumentError(absl::StrCat("\"", file, "\" is no file of a backup"));
}

absl::StatusOr<std::string> BackupObjectPath(const std::string& folder, const std::string& name) {
  if (!IsSafe(name)) return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is no name of an object"));
  return absl::StrCat(folder, "/objects/", name);
}

absl::StatusOr<BlobRef> DescribeFile(const std::string& path) {
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t size, RealFileSystem()->SizeBytes(path));
  Sha256 hash;
  CHAINFLEET_RETURN_IF_ERROR(ByteSource::InFile(path, size).ForEachPart(kPartBytes, [&](std::string_view part) {
    hash.Update(part.data(), part.size());
    return absl::OkStatus();
  }));
  return BlobRef{"", size, hash.Hex()};
}

absl::Status CheckBackupFile(const std::string& path, const BlobRef& expected) {
  const absl::StatusOr<BlobRef> found = DescribeFile(path);
  if (absl::IsNotFound(found.status())) return Damaged(path, "is missing");
  CHAINFLEET_RETURN_IF_ERROR(found.status());
  if (found->size_bytes != expected.size_bytes) {
    return Damaged(path, absl::StrCat("has ", found->size_bytes, " bytes, it had ", expected.size_bytes));
  }
  return found->sha256 == expected.sha256 ? absl::OkStatus() : Damaged(path, "was changed: its SHA-256 differs");
}

absl::StatusOr<BackupManifest> ReadBackup(
    const std::string& folder, const std::function<absl::Status(const BlobRef&, const std::string& path)>& take) {
  CHAINFLEET_ASSIGN_OR_RETURN(BackupManifest manifest, ReadBackupManifest(folder));
  const std::string list = absl::StrCat(folder, "/", manifest.list.name);
  CHAINFLEET_RETURN_IF_ERROR(CheckBackupFile(absl::StrCat(folder, "/", manifest.state.name), manifest.state));
  CHAINFLEET_RETURN_IF_ERROR(CheckBackupFile(list, manifest.list));
  CHAINFLEET_RETURN_IF_ERROR(VisitBackupList(list, [&](const BlobRef& object) -> absl::Status {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string path, BackupObjectPath(folder, object.name));
    CHAINFLEET_RETURN_IF_ERROR(CheckBackupFile(path, object));
    return take(object, path);
  }));
  return manifest;
}

}  // namespace chainfleet
