// Names of tenants.
#pragma once

namespace chainfleet {

// The tenant of tokens without a name, and of objects that older releases stored without a tenant.
inline constexpr char kDefaultTenant[] = "default";

// Stands for all tenants: that of workers that hold the chains of any.
inline constexpr char kEveryTenant[] = "*";

}  // namespace chainfleet
