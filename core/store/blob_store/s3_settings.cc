#include "core/store/blob_store/s3_settings.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {
namespace {

constexpr char kScheme[] = "s3://";

bool IsBucketName(const std::string& name) {
  const auto allowed = [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '-' || c == '.'; };
  return name.size() >= 3 && name.size() <= 63 && std::all_of(name.begin(), name.end(), allowed);
}

absl::Status TakeUrl(const std::string& url, S3Settings* settings) {
  const auto refuse = [&url](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("\"", url, "\": ", why, "; give s3://BUCKET or s3://BUCKET/PREFIX"));
  };
  if (!url.starts_with(kScheme)) return refuse("not an s3:// address");
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(url.substr(sizeof kScheme - 1), absl::MaxSplits('/', 1));
  settings->bucket = parts.first;
  settings->prefix = parts.second;
  if (!IsBucketName(settings->bucket)) return refuse("the bucket is 3 to 63 of a-z 0-9 . -");
  if (absl::EndsWith(settings->prefix, "/")) settings->prefix.pop_back();
  if (settings->prefix.empty()) return absl::OkStatus();
  if (!CheckBlobName(settings->prefix).ok()) return refuse("the prefix is parts of A-Z a-z 0-9 . _ - between '/'");
  settings->prefix += '/';
  return absl::OkStatus();
}

absl::Status TakeEndpoint(const std::string& endpoint, S3Settings* settings) {
  settings->endpoint = endpoint;
  if (absl::EndsWith(settings->endpoint, "/")) settings->endpoint.pop_back();
  if (endpoint.empty()) return absl::OkStatus();
  const size_t host = settings->endpoint.find("://");
  const std::string scheme = settings->endpoint.substr(0, host);
  const bool plain = host != std::string::npos && settings->endpoint.size() > host + 3 &&
                     settings->endpoint.find_first_of("/?#@ ", host + 3) == std::string::npos;
  if (plain && (scheme == "http" || scheme == "https")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("AWS_ENDPOINT_URL is \"", endpoint, "\": give http://HOST:PORT or https://HOST:PORT"));
}

}  // namespace

absl::StatusOr<S3Settings> ReadS3Settings(const std::string& url, const Environment& environment,
                                          const FileSystem& files) {
  S3Settings settings;
  CHAINFLEET_RETURN_IF_ERROR(TakeUrl(url, &settings));
  CHAINFLEET_RETURN_IF_ERROR(
      TakeEndpoint(FirstOf(environment, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, ""), &settings));
  settings.region = FirstOf(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}, "us-east-1");
  settings.ca_bundle = environment("AWS_CA_BUNDLE");
  CHAINFLEET_ASSIGN_OR_RETURN(settings.credentials, FindCredentials(environment, files));
  return settings;
}

}  // namespace chainfleet
