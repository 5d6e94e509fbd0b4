// The S3 server of with_s3.py, if this run has one.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/base/thread_pool.h"
#include "core/store/blob_store/s3_blob_store.h"

namespace chainfleet {

inline bool HasS3Server() { return std::getenv("CHAINFLEET_TEST_S3") != nullptr; }

// Returns the settings of the administrator for the server's bucket, below the caller's prefix.
inline S3Settings S3ServerSettings(const std::string& prefix) {
  const auto variable = [](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return std::string(value == nullptr ? "" : value);
  };
  return ReadS3Settings(variable("CHAINFLEET_TEST_S3") + "/" + prefix, variable, *RealFileSystem()).value();
}

inline std::unique_ptr<S3Client> MakeS3Client(S3Settings settings) {
  static SystemClock clock;
  static CurlTransport transport("");
  return std::make_unique<S3Client>(std::move(settings), &transport, &clock, RngKey{1}, PauseThread);
}

inline std::unique_ptr<S3BlobStore> OpenS3(const std::string& prefix, const S3BlobStore::Options& options = {}) {
  return S3BlobStore::Open(MakeS3Client(S3ServerSettings(prefix)), options).value();
}

}  // namespace chainfleet
