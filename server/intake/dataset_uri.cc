#include "server/intake/dataset_uri.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/base/percent.h"

namespace chainfleet {
namespace {

constexpr size_t kMaxUriBytes = 2048;  // an error that names the URI must fit into a call's trailing metadata

absl::Status Refuse(const std::string& uri, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(uri, ": ", why));
}

absl::Status CheckKey(const std::string& uri, const std::string& key) {
  const std::vector<absl::string_view> parts = absl::StrSplit(key, '/');
  for (const absl::string_view part : parts) {
    if (part == "." || part == "..") return Refuse(uri, "a key has no parts . and ..: write it out");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DatasetUri> ParseDatasetUri(const std::string& uri) {
  constexpr absl::string_view kFile = "file://", kS3 = "s3://";
  if (uri.size() > kMaxUriBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a URI of a data set has at most ", kMaxUriBytes, " bytes"));
  }
  DatasetUri parsed;
  const bool is_file = absl::StartsWith(uri, kFile);
  if (!is_file && !absl::StartsWith(uri, kS3)) return Refuse(uri, "give file:///PATH or s3://BUCKET/KEY");
  parsed.scheme = is_file ? DatasetUri::Scheme::kFile : DatasetUri::Scheme::kS3;
  if (uri.find_first_of("?#") != std::string::npos) return Refuse(uri, "write ? as %3F and # as %23");
  const absl::string_view rest = absl::string_view(uri).substr(is_file ? kFile.size() : kS3.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  const std::string host(rest.substr(0, slash));
  if (is_file && !host.empty() && !absl::EqualsIgnoreCase(host, "localhost")) {
    return Refuse(uri, "the server reads files of its own host only: give file:///PATH, with three slashes");
  }
  if (!is_file && host.empty()) return Refuse(uri, "the bucket is missing: give s3://BUCKET/KEY");
  if (!is_file) parsed.bucket = host;
  // The slash belongs to a file's path, but not to an S3 key.
  std::optional<std::string> path = PercentDecoded(rest.substr(std::min(rest.size(), slash + (is_file ? 0 : 1))));
  if (!path) return Refuse(uri, "a % must be followed by two hex digits other than 00; write % itself as %25");
  parsed.path = *std::move(path);
  if (parsed.path.empty() || parsed.path.back() == '/') return Refuse(uri, "this names a folder: name its files");
  if (!is_file) CHAINFLEET_RETURN_IF_ERROR(CheckKey(uri, parsed.path));
  return parsed;
}

}  // namespace chainfleet
