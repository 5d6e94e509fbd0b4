#include "core/domain/dataset.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/saturating.h"
#include "core/domain/parameter_shape.h"

namespace chainfleet {
namespace {

// Returns the fault of the names, or "" if they are valid.
std::string WrongWith(const std::vector<std::string>& names, const Targets& targets) {
  if (names.empty()) return "";
  const int64_t num_classes = NumClasses(targets);
  if (num_classes == 0) return "the targets are numbers, which have no classes";
  if (std::ssize(names) != num_classes) {
    return absl::StrCat("there are ", names.size(), " names, and ", num_classes, " classes");
  }
  int64_t bytes = 0;
  std::set<std::string> known;
  for (const std::string& name : names) {
    if (name.empty()) return "a name is empty";
    if (std::ranges::any_of(name, [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); })) {
      return "a name has control characters";
    }
    if (!known.insert(name).second) return absl::StrCat("two classes are called \"", name, "\"");
    bytes += std::ssize(name);
  }
  if (bytes <= limits::kMaxClassNamesBytes) return "";
  return absl::StrCat("the names have ", bytes, " bytes together, at most ", limits::kMaxClassNamesBytes, " are taken");
}

}  // namespace

absl::Status CheckClassNames(const std::vector<std::string>& names, const Targets& targets) {
  const std::string wrong = WrongWith(names, targets);
  return wrong.empty() ? absl::OkStatus() : InvalidFields({{"class_names", wrong}});
}

int64_t InputBytes(const Dataset& dataset) { return NumValues(dataset.input_shape) * ItemBytes(dataset.input_type); }

int64_t StoredBytes(const Dataset& dataset) {
  int64_t bytes = 0;
  for (const DatasetShard& shard : dataset.shards) bytes = SaturatingAdd(bytes, shard.object.size_bytes);
  return bytes;
}

}  // namespace chainfleet
