// Checks the lines of an audit log (core/store/audit_log/audit_log.h), each of which has the SHA-256 of the line
// before.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

class AuditChain {
 public:
  // DATA_LOSS, with the number of the line: it does not follow the one before, so one of them was changed, inserted or
  // removed. The first line may have any number, because the oldest lines are deleted.
  absl::Status Follow(const std::string& line);

  int64_t first() const { return first_; }  // number of the first line; 0: none
  int64_t last() const { return last_; }
  const std::string& digest() const { return digest_; }  // the newest line's

 private:
  int64_t first_ = 0, last_ = 0;
  std::string digest_;
};

}  // namespace chainfleet
