#include "server/predict/serving/version_lookup.h"

namespace chainfleet {

void VersionLookup::Find(const DrawQuery& query, const std::shared_ptr<void>& owner, Done done) {
  const Key key = {query.job, query.version};
  const auto [it, is_new] = asked_.try_emplace(key);
  it->second.next.push_back(std::move(done));
  if (is_new) Look(key, owner);
}

void VersionLookup::Look(const Key& key, const std::shared_ptr<void>& owner) {
  Asked& asked = asked_.at(key);
  asked.now = std::exchange(asked.next, {});
  catalog_->FindVersion(key.first, key.second,
                        [this, key, owner](const absl::StatusOr<std::shared_ptr<const Version>>& version) {
                          strand_->Schedule([this, key, owner, version] {
                            for (const Done& done : std::exchange(asked_.at(key).now, {})) done(version);
                            if (asked_.at(key).next.empty()) {
                              asked_.erase(key);
                            } else {
                              Look(key, owner);
                            }
                          });
                        });
}

}  // namespace chainfleet
