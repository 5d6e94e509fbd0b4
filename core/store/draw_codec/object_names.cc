#include "core/store/draw_codec/object_names.h"

#include <regex>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

// Names come from workers, and std::regex recurses over its input. Valid names are shorter than this.
constexpr size_t kMaxNameBytes = 256;

}  // namespace

std::string ChainObjectPrefix(const std::string& store_incarnation, const ChainId& chain) {
  return absl::StrCat(store_incarnation, "/", chain.job, "/", chain.index, "/");
}

std::string SegmentObjectName(const std::string& store_incarnation, const ChainId& chain, int64_t lease_epoch,
                              const DigestHex& digest) {
  return absl::StrCat(ChainObjectPrefix(store_incarnation, chain), "segments/e", lease_epoch, "-", digest);
}

std::string ResumeObjectName(const std::string& store_incarnation, const ChainId& chain, int64_t lease_epoch,
                             const DigestHex& sha256) {
  return absl::StrCat(ChainObjectPrefix(store_incarnation, chain), "resume/e", lease_epoch, "-", sha256);
}

std::string DatasetObjectName(const std::string& store_incarnation, const DigestHex& sha256, uint64_t nonce) {
  return absl::StrCat(store_incarnation, "/datasets/", sha256, "-", absl::Hex(nonce, absl::kZeroPad16));
}

std::string ModelObjectName(const std::string& store_incarnation, const DigestHex& sha256, uint64_t nonce) {
  return absl::StrCat(store_incarnation, "/models/", sha256, "-", absl::Hex(nonce, absl::kZeroPad16));
}

std::optional<ChainObjectName> ParseChainObjectName(const std::string& name) {
  static const std::regex* const kForm = new std::regex(
      "([a-z0-9-]+)/([a-z0-9-]+)/(0|[1-9][0-9]{0,8})/(segments|resume)/e(0|[1-9][0-9]{0,17})-([0-9a-f]{64})");
  std::smatch part;
  ChainObjectName parsed;
  if (name.size() > kMaxNameBytes || !std::regex_match(name, part, *kForm) ||
      !absl::SimpleAtoi(part[3].str(), &parsed.chain.index) || !absl::SimpleAtoi(part[5].str(), &parsed.lease_epoch)) {
    return std::nullopt;
  }
  parsed.kind = part[4] == "segments" ? ChainObjectName::Kind::kSegment : ChainObjectName::Kind::kResume;
  parsed.store_incarnation = part[1];
  parsed.chain.job = part[2];
  parsed.digest = part[6];
  return parsed;
}

bool IsObjectName(const std::string& name) {
  static const std::regex* const kContent = new std::regex("[a-z0-9-]+/(datasets|models)/[0-9a-f]{64}(-[0-9a-f]{16})?");
  return ParseChainObjectName(name).has_value() || (name.size() <= kMaxNameBytes && std::regex_match(name, *kContent));
}

}  // namespace chainfleet
