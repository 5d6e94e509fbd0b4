// The coordinators of a fleet as a worker sees them: several addresses, of which one leads.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chainfleet/v1/worker.grpc.pb.h"

namespace chainfleet {

// A connection to each address of a comma list "HOST:PORT,HOST:PORT"; only the one in use is dialled. Thread-safe.
class ServerLines {
 public:
  // `purposes`: a connection of its own for each, see DialServer.
  ServerLines(const std::string& addresses, const std::vector<std::string>& purposes);

  // The line for the next call.
  size_t current() const { return current_; }
  v1::WorkerService::Stub* stub(size_t line, size_t purpose) const { return stubs_[line][purpose].get(); }

  // How a call on `line` ended: after UNAVAILABLE (a standby, a server that is gone) or DEADLINE_EXCEEDED (a silent
  // one) later calls take the next address.
  void Ended(size_t line, absl::StatusCode code);

 private:
  std::vector<std::vector<std::unique_ptr<v1::WorkerService::Stub>>> stubs_;  // [address][purpose]
  std::atomic<size_t> current_ = 0;
};

}  // namespace chainfleet
