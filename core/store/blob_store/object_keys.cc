#include "core/store/blob_store/object_keys.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/ids.h"

namespace chainfleet {
namespace {

constexpr size_t kDigits = 64;

// INVALID_ARGUMENT.
absl::StatusOr<ObjectKey> ParseKey(const std::vector<std::string>& words) {
  if (words.size() < 2 || words.size() > 3) return absl::InvalidArgumentError("give ID KEY [TENANT]");
  // Its error would quote a key that is in the wrong place.
  const auto is_name = [](const std::string& word) { return CheckName("", word).ok(); };
  if (!is_name(words[0])) return absl::InvalidArgumentError("the id is no name of 1-63 of a-z, 0-9 and '-'");
  if (words[1].size() != kDigits || !std::ranges::all_of(words[1], absl::ascii_isxdigit)) {
    return absl::InvalidArgumentError("the key is not 64 hex digits, as `openssl rand -hex 32` prints them");
  }
  if (words.size() == 3 && !is_name(words[2])) return absl::InvalidArgumentError("the tenant is no name");
  return ObjectKey{words[0], absl::HexStringToBytes(words[1]), words.size() == 3 ? words[2] : ""};
}

}  // namespace

absl::StatusOr<ObjectKeys> ObjectKeys::Parse(const std::string& text) {
  ObjectKeys keys;
  int line = 0;
  for (const absl::string_view each : absl::StrSplit(text, '\n')) {
    ++line;
    const std::vector<std::string> words = absl::StrSplit(each, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty() || words[0].starts_with('#')) continue;
    absl::StatusOr<ObjectKey> key = ParseKey(words);
    if (key.ok() && keys.Find(key->id) != nullptr) key = absl::InvalidArgumentError("the id is there twice");
    if (!key.ok()) return Annotate(key.status(), absl::StrCat("line ", line, " of the keys of draws"));
    keys.keys_.push_back(*std::move(key));
  }
  return keys;
}

absl::StatusOr<const ObjectKey*> ObjectKeys::KeyOf(const std::string& tenant) const {
  for (const std::string& owner : {tenant, std::string()}) {
    const auto it = std::ranges::find(keys_, owner, &ObjectKey::tenant);
    if (it != keys_.end()) return &*it;
  }
  return WithReason(absl::FailedPreconditionError(absl::StrCat("the keys of draws have none for tenant ",
                                                               tenant.empty() ? "(unknown)" : tenant,
                                                               ": add a line ID KEY, for all tenants")),
                    "NO_DRAW_KEY");
}

const ObjectKey* ObjectKeys::Find(const std::string& id) const {
  const auto it = std::ranges::find(keys_, id, &ObjectKey::id);
  return it == keys_.end() ? nullptr : &*it;
}

}  // namespace chainfleet
