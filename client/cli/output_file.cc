#include "client/cli/output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

absl::Status WriteTo(const std::string& path, const std::string& bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return absl::OkStatus();
  const std::string message = absl::StrCat("cannot write ", path, ": ", std::strerror(errno));
  return errno == ENOSPC ? absl::ResourceExhaustedError(message) : absl::FailedPreconditionError(message);
}

}  // namespace

absl::Status WriteOutputFile(const std::string& path, const std::string& bytes) {
  return WriteOutputFile(path, [&bytes](const std::string& file) { return WriteTo(file, bytes); });
}

absl::Status WriteOutputFile(const std::string& path,
                             const std::function<absl::Status(const std::string& path)>& write) {
  std::error_code error;
  if (std::filesystem::is_symlink(path, error)) {  // such as /dev/stdout; a rename would replace the link
    const std::string target = std::filesystem::canonical(path, error).string();
    if (!error) return WriteOutputFile(target, write);
  }
  const auto status = std::filesystem::status(path, error);
  const bool in_place = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  if (in_place) return write(path);
  const std::string partial = path + ".partial";
  absl::Status written = write(partial);
  if (written.ok()) {
    std::filesystem::rename(partial, path, error);
    if (error) written = absl::FailedPreconditionError(absl::StrCat("cannot write ", path, ": ", error.message()));
  }
  if (!written.ok()) std::filesystem::remove(partial, error);
  return written;
}

std::string FolderOfOutput(const std::string& output) {
  std::error_code error;
  const auto status = std::filesystem::status(output, error);
  const bool is_device = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
                         !std::filesystem::is_directory(status);
  return is_device ? std::filesystem::temp_directory_path(error).string()
                   : std::filesystem::absolute(output).parent_path().string();
}

absl::Status MakeOutputFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("cannot make folder ", path, ": ", error.message()));
}

absl::Status MakeEmptyOutputFolder(const std::string& path) {
  CHAINFLEET_RETURN_IF_ERROR(MakeOutputFolder(path));
  std::error_code error;
  const bool is_empty = std::filesystem::is_empty(path, error);
  if (error) return absl::FailedPreconditionError(absl::StrCat("cannot read folder ", path, ": ", error.message()));
  if (is_empty) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is not empty, and its files would mix with the new ones: name another, or remove it"));
}

}  // namespace chainfleet
