#include "server/intake/dataset_roots.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/regular_file.h"

namespace chainfleet {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPartBytes = 8 * limits::kMiB;

absl::Status NotBelow() {
  return absl::PermissionDeniedError(
      "not below any --dataset-root of the server: upload the file itself, or have its operator move it or add a root");
}

absl::Status TooLarge(int64_t size_bytes, int64_t max_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat(size_bytes, " bytes are more than the ", max_bytes, " that this upload may still have"));
}

// Compares path components: /database is not below /data.
bool IsBelow(const fs::path& path, const fs::path& folder) {
  const fs::path prefix = folder.has_filename() ? folder : folder.parent_path();
  return std::mismatch(prefix.begin(), prefix.end(), path.begin(), path.end()).first == prefix.end();
}

// Adds what to do, where the system's message does not say it.
absl::Status Advise(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return absl::NotFoundError("not found on the server's host: check the path, or upload the file");
    case absl::StatusCode::kInvalidArgument:
      return absl::InvalidArgumentError("not a regular file: give each file by its own path");
    case absl::StatusCode::kPermissionDenied:
      return absl::PermissionDeniedError("the server's user may not read the file: ask the operator to allow it");
    case absl::StatusCode::kAborted:
      return absl::AbortedError("the file became shorter while it was read: put it again when it is whole");
    default:
      return status;
  }
}

absl::Status ReadRegular(const std::string& path, int64_t max_bytes, const DatasetRoots::Admit& admit,
                         const DatasetRoots::TakePart& take) {
  const absl::StatusOr<std::unique_ptr<RegularFile>> file = RegularFile::Open(path);
  if (!file.ok()) return Advise(file.status());
  if ((*file)->size_bytes() > max_bytes) return TooLarge((*file)->size_bytes(), max_bytes);
  CHAINFLEET_RETURN_IF_ERROR(admit((*file)->size_bytes()));
  absl::Status taken = absl::OkStatus();
  const absl::Status read = (*file)->Read(kPartBytes, [&](std::string_view part) { return taken = take(part); });
  return taken.ok() ? Advise(read) : taken;
}

// As S3Client::Succeed; a missing object's error says what the user can do.
absl::StatusOr<HttpReply> RunFor(const S3Client& client, const S3Call& call) {
  absl::StatusOr<HttpReply> reply = client.Succeed(call);
  if (!absl::IsNotFound(reply.status())) return reply;
  return absl::NotFoundError("there is no such object: check the bucket and the key");
}

S3Call PartOf(const std::string& key, int64_t begin, int64_t length) {
  return {.method = "GET",
          .key = key,
          .headers = {{"range", absl::StrCat("bytes=", begin, "-", begin + length - 1)}},
          .max_reply_bytes = std::max(length, limits::kS3MaxReplyBytes)};
}

}  // namespace

absl::Status DatasetRoots::CheckFolder(const std::string& folder) {
  if (folder.empty() || folder[0] != '/') {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": give an absolute folder or s3://BUCKET/PREFIX"));
  }
  std::error_code error;
  if (fs::is_directory(folder, error)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(folder, ": ", error ? error.message() : "not a folder"));
}

void DatasetRoots::AddFolder(const std::string& folder) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(folder, error);
  const std::string written = fs::path(folder).lexically_normal().string();
  folders_.push_back({written, error ? written : real.string()});
}

absl::Status DatasetRoots::Check(const std::string& uri) const {
  if (folders_.empty() && buckets_.empty()) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          uri,
                          ": this server reads no files by URI, for it has no --dataset-root: upload the file "
                          "itself, or have its operator give it a root")),
                      "NO_DATASET_ROOT");
  }
  return ParseDatasetUri(uri).status();
}

absl::Status DatasetRoots::Read(const std::string& uri, int64_t max_bytes, const Admit& admit,
                                const TakePart& take) const {
  CHAINFLEET_RETURN_IF_ERROR(Check(uri));
  CHAINFLEET_ASSIGN_OR_RETURN(const DatasetUri parsed, ParseDatasetUri(uri));
  return Annotate(parsed.scheme == DatasetUri::Scheme::kFile ? ReadFile(parsed.path, max_bytes, admit, take)
                                                             : ReadObject(parsed, max_bytes, admit, take),
                  uri);
}

absl::Status DatasetRoots::ReadFile(const std::string& path, int64_t max_bytes, const Admit& admit,
                                    const TakePart& take) const {
  const auto below = [this](const fs::path& judged, bool as_written) {
    return std::any_of(folders_.begin(), folders_.end(), [&](const Folder& folder) {
      return IsBelow(judged, folder.real) || (as_written && IsBelow(judged, folder.written));
    });
  };
  // Do not resolve other paths: an answer would reveal which files exist, and a network drive might hang.
  const fs::path written = fs::path(path).lexically_normal();
  if (!below(written, true)) return NotBelow();
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  if (error) return ReadRegular(written.string(), max_bytes, admit, take);
  if (!below(real, false)) return NotBelow();
  return ReadRegular(real.string(), max_bytes, admit, take);
}

absl::Status DatasetRoots::ReadObject(const DatasetUri& uri, int64_t max_bytes, const Admit& admit,
                                      const TakePart& take) const {
  const auto root = std::find_if(buckets_.begin(), buckets_.end(), [&](const auto& client) {
    return client->settings().bucket == uri.bucket && uri.path.starts_with(client->settings().prefix);
  });
  if (root == buckets_.end()) return NotBelow();
  const S3Client& client = **root;
  CHAINFLEET_ASSIGN_OR_RETURN(HttpReply head, RunFor(client, {.method = "HEAD", .key = uri.path}));
  int64_t size = 0;
  if (!absl::SimpleAtoi(head.headers["content-length"], &size)) {
    return absl::InternalError("S3 did not say how long the object is");
  }
  if (size > max_bytes) return TooLarge(size, max_bytes);
  CHAINFLEET_RETURN_IF_ERROR(admit(size));
  for (int64_t begin = 0; begin < size; begin += kPartBytes) {
    const int64_t length = std::min(kPartBytes, size - begin);
    CHAINFLEET_ASSIGN_OR_RETURN(HttpReply reply, RunFor(client, PartOf(uri.path, begin, length)));
    if (std::ssize(reply.body) != length || reply.headers["etag"] != head.headers["etag"]) {
      return absl::AbortedError("the object was replaced while it was read: put it again");
    }
    CHAINFLEET_RETURN_IF_ERROR(take(reply.body));
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
