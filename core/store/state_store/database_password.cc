#include "core/store/state_store/database_password.h"

#include "absl/strings/strip.h"
#include "core/base/command.h"
#include "core/base/log.h"

namespace chainfleet {

absl::StatusOr<std::string> DatabasePassword::Get() {
  MutexLock lock(&mutex_);
  if (clock_->Monotonic() - ran_ < (trusted_ ? kUse : kPause)) return printed_;
  printed_ = Run();
  if (!printed_.ok()) {
    printed_ = WithReason(
        absl::UnavailableError("PostgreSQL: --state-password-command: " + std::string(printed_.status().message())),
        "STORE_UNREACHABLE");
  }
  ran_ = clock_->Monotonic();
  trusted_ = printed_.ok();
  return printed_;
}

void DatabasePassword::Distrust() {
  MutexLock lock(&mutex_);
  trusted_ = false;
}

absl::StatusOr<std::string> DatabasePassword::Run() const {
  std::string told;  // for operators: callers see the error
  const absl::StatusOr<std::string> output =
      RunCommand(*clock_, {"/bin/sh", "-c", command_}, environment_, {.stop = stop_, .standard_error = &told});
  if (!told.empty()) Log(LogLevel::kError, "--state-password-command failed", {{"standard_error", told}});
  CHAINFLEET_RETURN_IF_ERROR(output.status());
  const absl::string_view password = absl::StripSuffix(absl::StripSuffix(*output, "\n"), "\r");
  const bool is_line = !password.empty() && password.find_first_of(absl::string_view("\n\0", 2)) == password.npos;
  if (!is_line) return absl::InvalidArgumentError("it must print the password alone, on one line");
  return std::string(password);
}

}  // namespace chainfleet
