#include "core/formats/npz.h"

#include <zip.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/formats/npy.h"
#include "core/formats/zip.h"

namespace chainfleet {
namespace {

using ZipHandle = std::unique_ptr<zip_t, void (*)(zip_t*)>;

absl::Status ZipError(const std::string& what, zip_error_t* error) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(what, ": ", zip_error_strerror(error)));
  zip_error_fini(error);
  return status;
}

}  // namespace

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
