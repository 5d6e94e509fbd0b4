// CHAINFLEET_CHECK(condition) << "context" ends the process in every build when an invariant is broken. Another worker
// resumes when the lease expires, which is safer than going on. Do not use it for input: return absl::Status.
#pragma once

#include <sstream>
#include <string>

namespace chainfleet::check_internal {

// The destructor logs and aborts.
class Failure {
 public:
  Failure(const char* file, int line, const char* condition) : file_(file), line_(line), condition_(condition) {}
  [[noreturn]] ~Failure();
  template <typename T>
  Failure& operator<<(const T& value) {
    message_ << value;
    return *this;
  }

 private:
  const char* file_;
  int line_;
  const char* condition_;
  std::ostringstream message_;
};

}  // namespace chainfleet::check_internal

#define CHAINFLEET_CHECK(condition)         \
  if (__builtin_expect(!!(condition), 1)) { \
  } else                                    \
    ::chainfleet::check_internal::Failure(__FILE__, __LINE__, #condition)
