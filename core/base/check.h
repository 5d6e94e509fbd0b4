// CHAINFLEET_CHECK(condition) << "context": a broken invariant ends the process, in every build. The lease expires and
// another worker resumes, which is safer than going on. Never use it for input: return absl::Status.
#pragma once

#include <sstream>
#include <string>

namespace chainfleet::check_internal {

// Logs and aborts when it goes out of scope.
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
