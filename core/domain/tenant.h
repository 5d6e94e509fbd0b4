// Names of tenants.
#pragma once

namespace chainfleet {

// The tenant of a server whose tokens name none, and of what older releases stored without one.
inline constexpr char kDefaultTenant[] = "default";

}  // namespace chainfleet
