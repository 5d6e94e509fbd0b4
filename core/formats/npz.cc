#include "core/formats/npz.h"

#include <zip.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/formats/npy.h"

namespace chainfleet {
namespace {

using ZipHandle = std::unique_ptr<zip_t, void (*)(zip_t*)>;

absl::Status ZipError(const std::string& what, zip_error_t* error) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(what, ": ", zip_error_strerror(error)));
  zip_error_fini(error);
  return status;
}

absl::StatusOr<std::string> ReadMember(zip_t* archive, zip_uint64_t index, const std::string& name) {
  zip_stat_t info;
  if (zip_stat_index(archive, index, 0, &info) != 0 || !(info.valid & ZIP_STAT_SIZE)) {
    return absl::InvalidArgumentError(absl::StrCat("archive member ", name, " has no size"));
  }
  if (info.size > static_cast<zip_uint64_t>(limits::kMaxBlobBytes)) {
    return absl::ResourceExhaustedError(absl::StrCat("archive member ", name, " is over 4 GiB"));
  }
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(archive, index, 0), zip_fclose);
  std::string content(info.size, '\0');
  if (!file || zip_fread(file.get(), content.data(), content.size()) != static_cast<zip_int64_t>(content.size())) {
    return absl::InvalidArgumentError(absl::StrCat("archive member ", name, " is damaged"));
  }
  return content;
}

}  // namespace

absl::StatusOr<std::map<std::string, Array>> ReadNpz(const std::string& bytes) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source == nullptr) return ZipError("cannot read the archive", &error);
  const ZipHandle archive(zip_open_from_source(source, ZIP_RDONLY, &error), zip_discard);
  if (!archive) {
    zip_source_free(source);
    return ZipError("not a .npz archive", &error);
  }
  std::map<std::string, Array> arrays;
  const zip_int64_t members = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < members; ++i) {
    std::string name = zip_get_name(archive.get(), static_cast<zip_uint64_t>(i), 0);
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string content,
                                ReadMember(archive.get(), static_cast<zip_uint64_t>(i), name));
    absl::StatusOr<Array> array = ReadNpy(content);
    if (!array.ok()) return Annotate(array.status(), name);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays.emplace(std::move(name), *std::move(array));
  }
  return arrays;
}

absl::StatusOr<std::string> WriteNpz(const std::map<std::string, Array>& arrays) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  if (target == nullptr) return ZipError("cannot make an archive", &error);
  zip_source_keep(target);  // to read it back after zip_close
  const std::unique_ptr<zip_source_t, void (*)(zip_source_t*)> keep(target, zip_source_free);
  ZipHandle archive(zip_open_from_source(target, ZIP_TRUNCATE, &error), zip_discard);
  if (!archive) return ZipError("cannot make an archive", &error);
  std::vector<std::string> contents;  // libzip reads them at zip_close
  contents.reserve(arrays.size());
  for (const auto& [name, array] : arrays) {
    contents.push_back(WriteNpy(array));
    zip_source_t* member = zip_source_buffer(archive.get(), contents.back().data(), contents.back().size(), 0);
    const zip_int64_t index = zip_file_add(archive.get(), (name + ".npy").c_str(), member, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(member);
      return absl::InternalError(absl::StrCat("cannot add ", name, " to the archive: ", zip_strerror(archive.get())));
    }
    zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  }
  if (zip_close(archive.get()) != 0)
    return absl::InternalError(absl::StrCat("cannot write the archive: ", zip_strerror(archive.get())));
  (void)archive.release();  // zip_close freed it
  zip_stat_t info;
  std::string bytes;
  if (zip_source_stat(target, &info) != 0 || zip_source_open(target) != 0)
    return absl::InternalError("cannot read the archive back");
  bytes.resize(info.size);
  const zip_int64_t read = zip_source_read(target, bytes.data(), bytes.size());
  zip_source_close(target);
  if (read != static_cast<zip_int64_t>(bytes.size())) return absl::InternalError("cannot read the archive back");
  return bytes;
}

}  // namespace chainfleet
