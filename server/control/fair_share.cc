#include "server/control/fair_share.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <utility>

namespace chainfleet {

double FairShare::Used(const Account& account, absl::Duration now) const {
  // Integrates the decaying weight over the elapsed time, for constantly held devices. Over all time the integral is 1
  // / rate.
  const double half_lives = absl::FDivDuration(now - account.as_of, settings_.half_life);
  const double kept = std::exp2(-half_lives);
  const double rate = std::numbers::ln2 / absl::ToDoubleSeconds(settings_.half_life);
  return account.used * kept + account.devices * (1 - kept) / rate;
}

void FairShare::Hold(const std::string& tenant, double devices, absl::Duration now) {
  Account& account = accounts_.try_emplace(tenant, Account{0, 0, now}).first->second;
  account.used = Used(account, now);
  account.as_of = now;
  account.devices = std::max(0.0, account.devices + devices);
}

double FairShare::UsedBy(const std::string& tenant, absl::Duration now) const {
  const auto account = accounts_.find(tenant);
  return account == accounts_.end() ? 0 : Used(account->second, now);
}

double FairShare::LoadOf(const std::string& tenant, double more_devices, absl::Duration now) const {
  const auto account = accounts_.find(tenant);
  const double rate = std::numbers::ln2 / absl::ToDoubleSeconds(settings_.half_life);
  double devices = more_devices;
  if (account != accounts_.end()) devices += account->second.devices + Used(account->second, now) * rate;
  return devices / settings_.weights.For(tenant);
}

std::vector<FairShare::Claim> FairShare::Divide(std::vector<Claim> claims, int64_t slots, double devices_per_slot,
                                                absl::Duration now) const {
  std::ranges::sort(claims, {}, &Claim::tenant);
  std::vector<Claim> parts;
  std::vector<std::pair<double, size_t>> order;  // load and claim
  for (size_t i = 0; i < claims.size(); ++i) order.emplace_back(LoadOf(claims[i].tenant, 0, now), i);
  std::ranges::sort(order);
  std::set<std::pair<double, size_t>> next;  // load and part
  for (const auto& [load, i] : order) {
    next.emplace(load, parts.size());
    parts.push_back({std::move(claims[i].tenant), claims[i].chains});
  }
  std::vector<int64_t> taken(parts.size(), 0);
  while (slots > 0 && !next.empty()) {
    const size_t part = next.extract(next.begin()).value().second;
    if (taken[part] == parts[part].chains) continue;
    ++taken[part];
    --slots;
    next.emplace(LoadOf(parts[part].tenant, static_cast<double>(taken[part]) * devices_per_slot, now), part);
  }
  for (size_t i = 0; i < parts.size(); ++i) parts[i].chains = taken[i];
  return parts;
}

}  // namespace chainfleet
