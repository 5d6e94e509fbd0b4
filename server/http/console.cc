#include "server/http/console.h"

#include "server/http/console_parts.h"

namespace chainfleet {
namespace {

// The page loads nothing from elsewhere, and no page of another site may frame it.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'";

}  // namespace

std::optional<WebReply> ConsolePart(const std::string& path) {
  for (const ConsoleFile& file : kConsoleFiles) {
    if (path != file.path) continue;
    WebReply reply{.body = file.text, .content_type = file.type};
    reply.headers.emplace_back("Content-Security-Policy", kPolicy);
    return reply;
  }
  return std::nullopt;
}

}  // namespace chainfleet
