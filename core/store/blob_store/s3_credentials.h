// Credentials for S3 from where AWS's own programs find them, read again before they expire.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/store/blob_store/http_transport.h"
#include "core/store/blob_store/s3_signature.h"

namespace chainfleet {

// Returns the value of an environment variable, "" if it is not set.
using Environment = std::function<std::string(const std::string& name)>;

// Returns the value of the first variable that is set.
std::string FirstOf(const Environment& environment, const std::vector<std::string>& names,
                    const std::string& otherwise);

struct ExpiringCredentials {
  S3Credentials credentials;
  absl::Time expires = absl::InfiniteFuture();
};

// Reads credentials. May block, for 30 s at most. The transport is for sources that have an address.
using CredentialReader =
    std::function<absl::StatusOr<ExpiringCredentials>(HttpTransport* transport, const Clock& clock)>;

CredentialReader FixedCredentials(const S3Credentials& credentials);

// Returns the reader of the first source that the environment names:
//   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, which never change;
//   AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN: a role, by the token of this file (AssumeRoleWithWebIdentity);
//   AWS_CONTAINER_CREDENTIALS_FULL_URI, with the token of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, if there is one;
//   AWS_EC2_METADATA_DISABLED=false: the role of this instance (IMDSv2);
//   the profile AWS_PROFILE (default) of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials): keys, read again each
//   minute, or a credential_process.
// INVALID_ARGUMENT; FAILED_PRECONDITION / NO_CREDENTIALS.
absl::StatusOr<CredentialReader> FindCredentials(const Environment& environment, const FileSystem& files);

// Keeps what a reader returned until shortly before it expires. Thread-safe; one caller at a time reads.
class CredentialCache {
 public:
  CredentialCache(CredentialReader read, HttpTransport* transport, const Clock* clock)
      : read_(std::move(read)), transport_(transport), clock_(clock) {}

  // If reading fails, returns the present ones until they expire. Then UNAVAILABLE / STORE_REFUSED.
  absl::StatusOr<S3Credentials> Current();

 private:
  const CredentialReader read_;
  HttpTransport* const transport_;
  const Clock* const clock_;
  Mutex mutex_;
  std::optional<ExpiringCredentials> current_ CHAINFLEET_GUARDED_BY(mutex_);
  absl::Time try_at_ CHAINFLEET_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace chainfleet
