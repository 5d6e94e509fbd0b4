// The coordinators of a fleet as a worker sees them: several addresses, one of which leads.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chainfleet/v1/worker.grpc.pb.h"
#include "core/tls/tls_files.h"

namespace chainfleet {

// One connection to each address of a list "HOST:PORT,HOST:PORT"; only the current one is dialled. Thread-safe.
class ServerLines {
 public:
  // `purposes`: each has its own connection, see DialServer.
  ServerLines(const std::string& addresses, const TlsFiles& tls, const std::vector<std::string>& purposes);

  // The line for the next call.
  size_t current() const { return current_; }
  v1::WorkerService::Stub* stub(size_t line, size_t purpose) const { return stubs_[line][purpose].get(); }

  // Reports how a call on `line` ended. After UNAVAILABLE (a standby, or no server) or DEADLINE_EXCEEDED (no answer)
  // later calls use the next address.
  void Ended(size_t line, absl::StatusCode code);

 private:
  std::vector<std::vector<std::unique_ptr<v1::WorkerService::Stub>>> stubs_;  // [address][purpose]
  std::atomic<size_t> current_ = 0;
};

}  // namespace chainfleet
