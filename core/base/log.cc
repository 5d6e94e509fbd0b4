#include "core/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/base/escaped.h"

namespace chainfleet {
namespace {

bool as_json = false;

std::vector<LogField>& EveryLine() {
  static auto* const fields = new std::vector<LogField>;
  return *fields;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

struct Render {
  std::string operator()(const std::string& v) const { return as_json ? Quoted(v) : WordOrQuoted(v); }
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const {
    return std::isfinite(v) ? fmt::format("{:.9g}", v) : Quoted(fmt::format("{}", v));
  }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
};

}  // namespace

void InitLog(const std::string& program, const std::string& level) {
  as_json = !isatty(STDERR_FILENO);
  auto logger = spdlog::stderr_color_mt(program);
  logger->set_pattern(as_json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","program":"%n",%v})"
                              : "%H:%M:%S.%e %^%L%$ %v");
  logger->set_level(level == "debug"     ? spdlog::level::debug
                    : level == "warning" ? spdlog::level::warn
                    : level == "error"   ? spdlog::level::err
                                         : spdlog::level::info);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void AddToEveryLine(const std::vector<LogField>& fields) {
  EveryLine().insert(EveryLine().end(), fields.begin(), fields.end());
}

bool IsLogged(LogLevel level) { return spdlog::should_log(ToSpdlog(level)); }

void Log(LogLevel level, const std::string& message, std::initializer_list<LogField> fields) {
  Log(level, message, std::vector<LogField>(fields));
}

void Log(LogLevel level, const std::string& message, const std::vector<LogField>& fields) {
  if (!IsLogged(level)) return;
  std::string line = as_json ? "\"message\":" + Quoted(message) : Escaped(message);
  const auto add = [&line](const LogField& field) {
    line += as_json ? "," + Quoted(field.key) + ":" : std::string(" ") + field.key + "=";
    line += std::visit(Render{}, field.value);
  };
  std::ranges::for_each(fields, add);
  for (const LogField& field : EveryLine()) {
    const auto same = [&field](const LogField& f) { return std::string_view(f.key) == field.key; };
    if (std::ranges::none_of(fields, same)) add(field);
  }
  spdlog::log(ToSpdlog(level), "{}", line);
}

}  // namespace chainfleet
