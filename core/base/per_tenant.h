// A setting that may differ by tenant.
#pragma once

#include <map>
#include <string>
#include <utility>

namespace chainfleet {

template <typename T>
struct PerTenant {
  PerTenant(T value_of_others, std::map<std::string, T> own_values = {})  // NOLINT: most settings are one for all
      : others(value_of_others), own(std::move(own_values)) {}

  T For(const std::string& tenant) const {
    const auto found = own.find(tenant);
    return found == own.end() ? others : found->second;
  }

  T others;                      // for every tenant without a value of its own
  std::map<std::string, T> own;  // by tenant
};

}  // namespace chainfleet
