#include "core/store/blob_store/s3_credentials.h"

#include <map>
#include <pugixml.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/command.h"
#include "core/base/environment.h"
#include "core/base/log.h"
#include "core/base/percent.h"
#include "nlohmann/json.hpp"

namespace chainfleet {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10), kEarly = absl::Minutes(5), kRetry = absl::Seconds(30);
constexpr int64_t kMaxReplyBytes = 64 << 10;
constexpr char kInstance[] = "http://169.254.169.254", kRoles[] = "/latest/meta-data/iam/security-credentials/";

absl::Status NoCredentials(const std::string& why) {
  return WithReason(absl::FailedPreconditionError(absl::StrCat("no credentials for S3: ", why)), "NO_CREDENTIALS");
}

absl::StatusOr<ExpiringCredentials> Complete(S3Credentials credentials, const std::string& expires,
                                             const std::string& source) {
  ExpiringCredentials read{std::move(credentials)};
  std::string error;
  const bool dated = expires.empty() || absl::ParseTime(absl::RFC3339_full, expires, &read.expires, &error);
  if (dated && !read.credentials.access_key_id.empty() && !read.credentials.secret_access_key.empty()) return read;
  return NoCredentials(absl::StrCat(source, " returned none"));
}

// Reads the JSON object that containers, instances and processes return.
absl::StatusOr<ExpiringCredentials> FromJson(const std::string& text, const std::string& source) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto field = [&](const char* name) {
    const auto found = json.is_object() ? json.find(name) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : "";
  };
  return Complete(
      {field("AccessKeyId"), field("SecretAccessKey"), field("Token").empty() ? field("SessionToken") : field("Token")},
      field("Expiration"), source);
}

// Neither the request nor the reply may be part of the error.
absl::StatusOr<std::string> Ask(HttpTransport* transport, const std::string& method, const std::string& url,
                                std::map<std::string, std::string> headers, const std::string& body = "") {
  const HttpRequest request{.method = method,
                            .url = url,
                            .headers = std::move(headers),
                            .body = body,
                            .max_reply_bytes = kMaxReplyBytes,
                            .stall_timeout = kPatience,
                            .timeout = kPatience};
  CHAINFLEET_ASSIGN_OR_RETURN(HttpReply reply, transport->Send(request));
  if (reply.code == 200) return std::move(reply.body);
  return absl::UnavailableError(absl::StrCat(url, " answered HTTP ", reply.code));
}

absl::StatusOr<std::string> TokenOf(const FileSystem& files, const std::string& path) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string text, files.Read(path));
  return std::string(absl::StripAsciiWhitespace(text));
}

CredentialReader WebIdentity(const Environment& environment, const FileSystem& files, const std::string& token_file) {
  const std::string region = FirstOf(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}, "");
  const std::string url = FirstOf(environment, {"AWS_ENDPOINT_URL_STS"},
                                  absl::StrCat("https://sts.", region.empty() ? "" : region + ".", "amazonaws.com")) +
                          "/";
  const std::string role = environment("AWS_ROLE_ARN"),
                    session = FirstOf(environment, {"AWS_ROLE_SESSION_NAME"}, "chainfleet");
  return [=, files = &files](HttpTransport* transport, const Clock&) -> absl::StatusOr<ExpiringCredentials> {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string token, TokenOf(*files, token_file));
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string reply,
                                Ask(transport, "POST", url, {{"content-type", "application/x-www-form-urlencoded"}},
                                    S3QueryString({{"Action", "AssumeRoleWithWebIdentity"},
                                                   {"Version", "2011-06-15"},
                                                   {"RoleArn", role},
                                                   {"RoleSessionName", session},
                                                   {"WebIdentityToken", token}})));
    pugi::xml_document document;
    document.load_buffer(reply.data(), reply.size());
    const pugi::xml_node found = document.child("AssumeRoleWithWebIdentityResponse")
                                     .child("AssumeRoleWithWebIdentityResult")
                                     .child("Credentials");
    return Complete(
        {found.child_value("AccessKeyId"), found.child_value("SecretAccessKey"), found.child_value("SessionToken")},
        found.child_value("Expiration"), url);
  };
}

CredentialReader Container(const Environment& environment, const FileSystem& files, const std::string& url) {
  return [url, files = &files, token_file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")](
             HttpTransport* transport, const Clock&) -> absl::StatusOr<ExpiringCredentials> {
    std::map<std::string, std::string> headers;
    if (!token_file.empty()) {
      CHAINFLEET_ASSIGN_OR_RETURN(headers["authorization"], TokenOf(*files, token_file));
    }
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string reply, Ask(transport, "GET", url, std::move(headers)));
    return FromJson(reply, url);
  };
}

CredentialReader InstanceProfile(const std::string& endpoint) {
  return [endpoint](HttpTransport* transport, const Clock&) -> absl::StatusOr<ExpiringCredentials> {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string token, Ask(transport, "PUT", endpoint + "/latest/api/token",
                                                             {{"x-aws-ec2-metadata-token-ttl-seconds", "300"}}));
    const std::map<std::string, std::string> headers{{"x-aws-ec2-metadata-token", token}};
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string roles, Ask(transport, "GET", endpoint + kRoles, headers));
    const std::string role = PercentEncoded(roles.substr(0, roles.find('\n')));
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string reply, Ask(transport, "GET", endpoint + kRoles + role, headers));
    return FromJson(reply, endpoint);
  };
}

// Reads the lines NAME = VALUE of one [section].
std::map<std::string, std::string> SectionOf(const std::string& text, const std::string& section) {
  std::map<std::string, std::string> values;
  bool inside = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, "[")) {
      inside = line == absl::StrCat("[", section, "]");
    } else if (const size_t sign = line.find('='); inside && sign != absl::string_view::npos && line[0] != '#') {
      values[std::string(absl::StripAsciiWhitespace(line.substr(0, sign)))] =
          std::string(absl::StripAsciiWhitespace(line.substr(sign + 1)));
    }
  }
  return values;
}

absl::StatusOr<ExpiringCredentials> RunProcess(const Clock& clock, const std::string& command) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string output,
                              RunCommand(clock, {"/bin/sh", "-c", command}, OwnEnvironment()));
  return FromJson(output, "credential_process");
}

CredentialReader Profile(const FileSystem& files, const std::string& path, const std::string& profile) {
  return [path, profile, files = &files](HttpTransport*, const Clock& clock) -> absl::StatusOr<ExpiringCredentials> {
    const absl::StatusOr<std::string> text = files->Read(path);
    if (!text.ok()) {
      return NoCredentials(absl::StrCat("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or put both into profile [",
                                        profile, "] of ", path, " (", text.status().message(), ")"));
    }
    std::map<std::string, std::string> values = SectionOf(*text, profile);
    if (const std::string& command = values["credential_process"]; !command.empty()) return RunProcess(clock, command);
    CHAINFLEET_ASSIGN_OR_RETURN(
        ExpiringCredentials read,
        Complete({values["aws_access_key_id"], values["aws_secret_access_key"], values["aws_session_token"]}, "",
                 absl::StrCat("profile [", profile, "] of ", path)));
    read.expires = clock.Wall() + kEarly + absl::Minutes(1);
    return read;
  };
}

}  // namespace

std::string FirstOf(const Environment& environment, const std::vector<std::string>& names,
                    const std::string& otherwise) {
  for (const std::string& name : names) {
    if (std::string value = environment(name); !value.empty()) return value;
  }
  return otherwise;
}

CredentialReader FixedCredentials(const S3Credentials& credentials) {
  return [credentials](HttpTransport*, const Clock&) { return ExpiringCredentials{credentials}; };
}

absl::StatusOr<CredentialReader> FindCredentials(const Environment& environment, const FileSystem& files) {
  const S3Credentials fixed{environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY"),
                            environment("AWS_SESSION_TOKEN")};
  if (!fixed.access_key_id.empty() && !fixed.secret_access_key.empty()) return FixedCredentials(fixed);
  const std::string token_file = environment("AWS_WEB_IDENTITY_TOKEN_FILE"), role = environment("AWS_ROLE_ARN");
  if (token_file.empty() != role.empty()) {
    return absl::InvalidArgumentError("set both AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or neither");
  }
  if (!token_file.empty()) return WebIdentity(environment, files, token_file);
  if (const std::string url = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI"); !url.empty()) {
    return Container(environment, files, url);
  }
  if (environment("AWS_EC2_METADATA_DISABLED") == "false") {
    return InstanceProfile(FirstOf(environment, {"AWS_EC2_METADATA_SERVICE_ENDPOINT"}, kInstance));
  }
  CredentialReader profile =
      Profile(files, FirstOf(environment, {"AWS_SHARED_CREDENTIALS_FILE"}, environment("HOME") + "/.aws/credentials"),
              FirstOf(environment, {"AWS_PROFILE"}, "default"));
  const absl::StatusOr<ExpiringCredentials> read = profile(nullptr, SystemClock());
  if (!read.ok()) return read.status();
  return profile;
}

absl::StatusOr<S3Credentials> CredentialCache::Current() {
  MutexLock lock(&mutex_);
  const absl::Time now = clock_->Wall();
  const bool valid = current_ && now < current_->expires;
  if (valid && (now < current_->expires - kEarly || now < try_at_)) return current_->credentials;
  absl::StatusOr<ExpiringCredentials> read = read_(transport_, *clock_);
  if (read.ok()) {
    current_ = *std::move(read);
    return current_->credentials;
  }
  Log(LogLevel::kWarning, "credentials for S3 could not be read again", {{"error", read.status().ToString()}});
  try_at_ = now + kRetry;
  if (valid) return current_->credentials;
  return WithReason(absl::UnavailableError(read.status().message()), "STORE_REFUSED");
}

}  // namespace chainfleet
