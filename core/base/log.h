// Structured log lines on stderr: text on a terminal, else one JSON object a line. Wraps spdlog.
//
//   Log(LogLevel::kInfo, "lease granted", {{"job", job}, {"chain", 3}, {"lease_epoch", 7}, {"worker", id}});
//
// Lines about a job, chain, lease, worker or request carry those fields under exactly these names. Never log tokens.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

namespace chainfleet {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogField {
  template <typename T>
  LogField(const char* name, const T& v) : key(name), value(Make(v)) {}
  const char* key;
  std::variant<std::string, int64_t, double, bool> value;

 private:
  template <typename T>
  static std::variant<std::string, int64_t, double, bool> Make(const T& v) {
    if constexpr (std::same_as<T, bool>) {
      return v;
    } else if constexpr (std::integral<T>) {
      return static_cast<int64_t>(v);
    } else if constexpr (std::floating_point<T>) {
      return static_cast<double>(v);
    } else {
      return std::string(v);
    }
  }
};

// Call once, at the start of main, before any thread starts. `level`: debug, info, warning or error. Any other value
// means info.
void InitLog(const std::string& program, const std::string& level);

// Adds these fields to each later line that does not set them. Call after InitLog, before another thread logs.
void AddToEveryLine(const std::vector<LogField>& fields);

// Returns true if lines of this level are written. Check IsLogged before building the fields of frequent lines.
// Thread-safe, as Log is.
bool IsLogged(LogLevel level);

void Log(LogLevel level, const std::string& message, std::initializer_list<LogField> fields = {});
void Log(LogLevel level, const std::string& message, const std::vector<LogField>& fields);

}  // namespace chainfleet
