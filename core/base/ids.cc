#include "core/base/ids.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace chainfleet {

std::string ToString(const ChainId& id) { return absl::StrCat(id.job, "/", id.index); }

absl::Status CheckName(const std::string& what, const std::string& name, const std::string& path) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto allowed = [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '-'; };
  if (name.empty() || name.size() > 63 || !lower(name.front()) || name.back() == '-' ||
      !std::all_of(name.begin(), name.end(), allowed)) {
    return InvalidFields(
        {{path,
          absl::StrCat(what, " name \"", name,
                       "\" is not allowed: use 1-63 of a-z, 0-9 and '-', starting with a letter, not ending in '-'")}});
  }
  return absl::OkStatus();
}

absl::Status CheckReference(const std::string& what, const std::string& name, const std::string& path) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return CheckName(what, name, path);
  CHAINFLEET_RETURN_IF_ERROR(CheckName("tenant", name.substr(0, slash), path));
  return CheckName(what, name.substr(slash + 1), path);
}

std::string MakeJobId(const std::string& name, uint64_t random_bits) {
  constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string id = name + "-";
  for (int i = 0; i < 6; ++i) id += kAlphabet[(random_bits >> (5 * i)) & 31];
  return id;
}

}  // namespace chainfleet
