// Names of tenants.
#pragma once

namespace chainfleet {

// The tenant of tokens without a name, and of objects that older releases stored without a tenant.
inline constexpr char kDefaultTenant[] = "default";

}  // namespace chainfleet
