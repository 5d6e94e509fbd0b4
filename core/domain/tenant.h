// Names of tenants, and of what belongs to them.
#pragma once

#include <string>

namespace chainfleet {

// The tenant of tokens without a name, and of objects that older releases stored without a tenant.
inline constexpr char kDefaultTenant[] = "default";
// Stands for all tenants: where something is shared, and for workers that take the chains of any.
inline constexpr char kEveryTenant[] = "*";

// Returns the name that a data set or a model has among those of all tenants. Those of kDefaultTenant have their plain
// names: stores of one tenant need no upgrade.
inline std::string ContentKey(const std::string& tenant, const std::string& name) {
  return tenant == kDefaultTenant ? name : tenant + "/" + name;
}
template <typename Item>
std::string ContentKey(const Item& item) {
  return ContentKey(item.tenant, item.name);
}

}  // namespace chainfleet
