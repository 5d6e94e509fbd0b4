#include "server/control/incarnation_listing.h"

#include <utility>

#include "core/store/draw_codec/object_names.h"

namespace chainfleet {
namespace {

// Joins chains that page boundaries have split.
class ChainGroups {
 public:
  explicit ChainGroups(const IncarnationVisitor& visitor) : visitor_(visitor) {}

  absl::Status Take(const std::vector<std::string>& page) {
    std::vector<std::string> content;
    for (const std::string& name : page) {
      if (!prefix_.empty() && name.starts_with(prefix_)) {
        objects_.insert(name);
      } else if (const auto parsed = ParseChainObjectName(name)) {
        CHAINFLEET_RETURN_IF_ERROR(End());
        chain_ = parsed->chain;
        prefix_ = ChainObjectPrefix(parsed->store_incarnation, chain_);
        objects_.insert(name);
      } else if (IsObjectName(name)) {
        content.push_back(name);
      }
    }
    return content.empty() ? absl::OkStatus() : visitor_.content(content);
  }

  // Reports the chain that was collected last.
  absl::Status End() {
    prefix_.clear();
    const std::set<std::string> objects = std::exchange(objects_, {});
    return objects.empty() ? absl::OkStatus() : visitor_.chain(chain_, objects);
  }

 private:
  const IncarnationVisitor& visitor_;
  ChainId chain_;
  std::string prefix_;  // prefix of the chain's names
  std::set<std::string> objects_;
};

}  // namespace

absl::Status VisitIncarnation(const BlobStore& blobs, const std::string& incarnation,
                              const IncarnationVisitor& visitor) {
  ChainGroups groups(visitor);
  CHAINFLEET_RETURN_IF_ERROR(
      blobs.ListPages(incarnation + "/", [&](const std::vector<std::string>& page) { return groups.Take(page); }));
  return groups.End();
}

}  // namespace chainfleet
