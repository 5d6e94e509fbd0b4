// The OpenAPI document of the HTTP port.
#pragma once

#include <string>

namespace chainfleet {

// Made from the table of routes and the descriptors of their messages, so it cannot lag behind them. JSON.
const std::string& OpenApiDocument();

}  // namespace chainfleet
