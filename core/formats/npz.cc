#include "core/formats/npz.h"

#include <algorithm>
#include <utility>

#include "core/formats/npy.h"
#include "core/formats/zip.h"

namespace chainfleet {

absl::StatusOr<std::map<std::string, Array>> ReadNpz(const std::string& bytes, const std::vector<std::string>& names,
                                                     int64_t max_bytes, const AdmitBytes& admit) {
  CHAINFLEET_ASSIGN_OR_RETURN(const ZipReader archive, ZipReader::Open(bytes, ".npz"));
  std::map<std::string, Array> arrays;
  int64_t left = max_bytes;
  for (size_t i = 0; i < archive.names().size(); ++i) {
    const std::string& member = archive.names()[i];
    const std::string name = member.ends_with(".npy") ? member.substr(0, member.size() - 4) : member;
    const bool wanted = names.empty() || std::find(names.begin(), names.end(), name) != names.end();
    if (!wanted || arrays.contains(name)) continue;
    CHAINFLEET_ASSIGN_OR_RETURN(std::string content, archive.Read(i, left, admit));
    left -= static_cast<int64_t>(content.size());
    absl::StatusOr<Array> array = ReadNpy(std::move(content));
    if (!array.ok()) return Annotate(array.status(), member);
    arrays.emplace(name, *std::move(array));
  }
  return arrays;
}

absl::StatusOr<std::string> WriteNpz(const std::map<std::string, Array>& arrays,
                                     const std::vector<std::pair<std::string, std::string>>& others) {
  std::vector<std::pair<std::string, std::string>> members = others;
  for (const auto& [name, array] : arrays) members.emplace_back(name + ".npy", WriteNpy(array));
  return WriteZip(members);
}

absl::Status WriteNpzFile(const std::string& path, const std::vector<StreamedArray>& arrays,
                          const std::vector<std::pair<std::string, std::string>>& others) {
  std::vector<ZipMember> members;
  for (const StreamedArray& array : arrays) {
    const std::string header = NpyHeader(array.type, array.shape);
    const auto before = static_cast<int64_t>(header.size());
    members.push_back({array.name + ".npy", before + array.size_bytes(),
                       [&array, header, before](int64_t at, char* to, int64_t count) {
                         const int64_t of_header = std::clamp<int64_t>(before - at, 0, count);
                         std::copy_n(header.data() + std::min(at, before), of_header, to);
                         if (of_header == count) return absl::OkStatus();
                         return array.read(at + of_header - before, to + of_header, count - of_header);
                       }});
  }
  for (const auto& other : others) {
    const std::string* const content = &other.second;
    members.push_back(
        {other.first, static_cast<int64_t>(content->size()), [content](int64_t at, char* to, int64_t count) {
           std::copy_n(content->data() + at, count, to);
           return absl::OkStatus();
         }});
  }
  return WriteZipFile(path, members);
}

}  // namespace chainfleet
