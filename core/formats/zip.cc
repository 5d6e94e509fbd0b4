#include "core/formats/zip.h"

#include <zip.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

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
  char beyond;  // reading on to the end checks the CRC
  if (!file || zip_fread(file.get(), content.data(), content.size()) != static_cast<zip_int64_t>(content.size()) ||
      zip_fread(file.get(), &beyond, 1) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("archive member ", name, " is damaged"));
  }
  return content;
}

}  // namespace

absl::Status ForEachZipMember(const std::string& bytes, const std::string& kind,
                              const std::function<absl::Status(std::string name, const std::string& content)>& take) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source == nullptr) return ZipError("cannot read the archive", &error);
  const std::unique_ptr<zip_t, void (*)(zip_t*)> archive(zip_open_from_source(source, ZIP_RDONLY, &error), zip_discard);
  if (!archive) {
    zip_source_free(source);
    return ZipError(absl::StrCat("not a ", kind, " archive"), &error);
  }
  const zip_int64_t members = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < members; ++i) {
    std::string name = zip_get_name(archive.get(), static_cast<zip_uint64_t>(i), 0);
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string content,
                                ReadMember(archive.get(), static_cast<zip_uint64_t>(i), name));
    CHAINFLEET_RETURN_IF_ERROR(take(std::move(name), content));
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
