#include "worker/rpc/server_lines.h"

#include "absl/strings/str_split.h"
#include "worker/rpc/worker_channel.h"

namespace chainfleet {

ServerLines::ServerLines(const std::string& addresses, const TlsFiles& tls, const std::vector<std::string>& purposes) {
  for (const auto address : absl::StrSplit(addresses, ',')) {
    stubs_.emplace_back();
    for (const std::string& purpose : purposes) {
      stubs_.back().push_back(v1::WorkerService::NewStub(DialServer(std::string(address), purpose, tls)));
    }
  }
}

void ServerLines::Ended(size_t line, absl::StatusCode code) {
  // Calls to a frozen or disconnected leader end at their deadline. Only the first of them changes the address.
  const bool gone = code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDeadlineExceeded;
  if (gone) current_.compare_exchange_strong(line, (line + 1) % stubs_.size());
}

}  // namespace chainfleet
