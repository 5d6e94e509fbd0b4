#include "core/formats/npz.h"

#include <utility>
#include <vector>

#include "core/formats/npy.h"
#include "core/formats/zip.h"

namespace chainfleet {

absl::StatusOr<std::map<std::string, Array>> ReadNpz(const std::string& bytes) {
  std::map<std::string, Array> arrays;
  CHAINFLEET_RETURN_IF_ERROR(
      ForEachZipMember(bytes, ".npz", [&](std::string name, const std::string& content) -> absl::Status {
        absl::StatusOr<Array> array = ReadNpy(content);
        if (!array.ok()) return Annotate(array.status(), name);
        if (name.ends_with(".npy")) name.resize(name.size() - 4);
        arrays.emplace(std::move(name), *std::move(array));
        return absl::OkStatus();
      }));
  return arrays;
}

absl::StatusOr<std::string> WriteNpz(const std::map<std::string, Array>& arrays) {
  std::vector<std::pair<std::string, std::string>> members;
  members.reserve(arrays.size());
  for (const auto& [name, array] : arrays) members.emplace_back(name + ".npy", WriteNpy(array));
  return WriteZip(members);
}

}  // namespace chainfleet
