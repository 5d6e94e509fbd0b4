// The console: the page at / and its parts, which call the job API of the same port from a browser.
#pragma once

#include <optional>
#include <string>

#include "server/http/http_message.h"

namespace chainfleet {

// nullopt if `path` is no part of the console.
std::optional<WebReply> ConsolePart(const std::string& path);

}  // namespace chainfleet
