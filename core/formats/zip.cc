#include "core/formats/zip.h"

#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

constexpr size_t kFirstBytes = 64 * 1024;

absl::Status ZipError(const std::string& what, zip_error_t* error) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(what, ": ", zip_error_strerror(error)));
  zip_error_fini(error);
  return status;
}

absl::StatusOr<int64_t> StatedSize(zip_t* archive, zip_uint64_t index, const std::string& name) {
  zip_stat_t info;
  if (zip_stat_index(archive, index, 0, &info) == 0 && (info.valid & ZIP_STAT_SIZE)) {
    return static_cast<int64_t>(std::min<zip_uint64_t>(info.size, std::numeric_limits<int64_t>::max()));
  }
  return absl::InvalidArgumentError(absl::StrCat("archive member ", name, " has no size"));
}

using Member = std::unique_ptr<zip_file_t, int (*)(zip_file_t*)>;  // null: it cannot be opened

absl::Status Damaged(const std::string& name) {
  return absl::InvalidArgumentError(absl::StrCat("archive member ", name, " is damaged"));
}

// Reads `size` bytes. True if the member has no more; reading to its end also checks its CRC.
bool ReadAll(zip_file_t* member, char* to, size_t size) {
  for (size_t done = 0; done < size;) {
    const zip_int64_t came = zip_fread(member, to + done, size - done);
    if (came <= 0) return false;
    done += static_cast<size_t>(came);
  }
  char beyond;
  return zip_fread(member, &beyond, 1) == 0;
}

// The size within `max_bytes`.
absl::StatusOr<size_t> AdmittedSize(zip_t* archive, zip_uint64_t index, const std::string& name, int64_t max_bytes) {
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t size, StatedSize(archive, index, name));
  if (size <= max_bytes) return static_cast<size_t>(size);
  return absl::ResourceExhaustedError(absl::StrCat("archive member ", name, " unpacks to ", size, " bytes, over the ",
                                                   max_bytes, " that are left for it"));
}

absl::StatusOr<std::string> ReadMember(zip_t* archive, zip_uint64_t index, const std::string& name, int64_t max_bytes,
                                       const AdmitBytes& admit) {
  CHAINFLEET_ASSIGN_OR_RETURN(const size_t size, AdmittedSize(archive, index, name, max_bytes));
  CHAINFLEET_RETURN_IF_ERROR(admit(static_cast<int64_t>(size)));
  const Member file(zip_fopen_index(archive, index, 0), zip_fclose);
  std::string content;
  while (content.size() < size) {  // in parts: the stated size may be false
    const size_t done = content.size();
    content.resize(std::min<size_t>(size, std::max(content.capacity(), 2 * done + kFirstBytes)));
    const zip_int64_t came = file ? zip_fread(file.get(), content.data() + done, content.size() - done) : -1;
    if (came <= 0) return Damaged(name);
    content.resize(done + static_cast<size_t>(came));
  }
  if (!file || !ReadAll(file.get(), nullptr, 0)) return Damaged(name);
  return content;
}

absl::Status AddMember(zip_t* archive, const std::string& name, const std::string& content) {
  zip_source_t* member = zip_source_buffer(archive, content.data(), content.size(), 0);
  const zip_int64_t index = zip_file_add(archive, name.c_str(), member, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(member);
    return absl::InternalError(absl::StrCat("cannot add ", name, " to the archive: ", zip_strerror(archive)));
  }
  zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadBack(zip_source_t* written) {
  zip_stat_t info;
  if (zip_source_stat(written, &info) != 0 || zip_source_open(written) != 0)
    return absl::InternalError("cannot read the archive back");
  std::string bytes(info.size, '\0');
  const zip_int64_t read = zip_source_read(written, bytes.data(), bytes.size());
  zip_source_close(written);
  if (read != static_cast<zip_int64_t>(bytes.size())) return absl::InternalError("cannot read the archive back");
  return bytes;
}

// The handle through which libzip reads a member.
struct MemberSource {
  const ZipMember* member = nullptr;
  int64_t at = 0;
  absl::Status status = absl::OkStatus();
};

zip_int64_t PassMember(void* state, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  MemberSource& source = *static_cast<MemberSource*>(state);
  switch (command) {
    case ZIP_SOURCE_OPEN:
      source.at = 0;
      return 0;
    case ZIP_SOURCE_READ: {
      const int64_t count = std::min(static_cast<int64_t>(length), source.member->size_bytes - source.at);
      source.status = source.member->read(source.at, static_cast<char*>(data), count);
      source.at += count;
      return source.status.ok() ? count : -1;
    }
    case ZIP_SOURCE_STAT: {
      zip_stat_t* const stat = static_cast<zip_stat_t*>(data);
      zip_stat_init(stat);
      stat->size = static_cast<zip_uint64_t>(source.member->size_bytes);
      stat->valid = ZIP_STAT_SIZE;
      return sizeof *stat;
    }
    case ZIP_SOURCE_ERROR:
      // libzip expects two numbers: EIO of the system; `status` keeps the message.
      if (length < 2 * sizeof(int)) return -1;
      static_cast<int*>(data)[0] = ZIP_ER_READ;
      static_cast<int*>(data)[1] = EIO;
      return 2 * sizeof(int);
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
                                            ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, -1);
    default:
      return 0;
  }
}

}  // namespace

absl::StatusOr<ZipReader> ZipReader::Open(const ByteSource& source, const std::string& kind) {
  zip_error_t error;
  zip_error_init(&error);
  const std::string_view bytes = source.in_memory();
  zip_source_t* content = source.path().empty()
                              ? zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error)
                              : zip_source_file_create(source.path().c_str(), 0, source.size_bytes(), &error);
  if (content == nullptr) return ZipError("cannot read the archive", &error);
  Archive archive(zip_open_from_source(content, ZIP_RDONLY, &error), zip_discard);
  if (!archive) {
    zip_source_free(content);
    return ZipError(absl::StrCat("not a ", kind, " archive"), &error);
  }
  std::vector<std::string> names;
  const zip_int64_t members = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < members; ++i) {
    const char* name = zip_get_name(archive.get(), static_cast<zip_uint64_t>(i), 0);
    if (name == nullptr) return absl::InvalidArgumentError(absl::StrCat("archive member ", i, " has no name"));
    names.emplace_back(name);
  }
  return ZipReader(std::move(archive), std::move(names));
}

absl::StatusOr<int64_t> ZipReader::SizeBytes(size_t index) const {
  return StatedSize(archive_.get(), index, names_[index]);
}

absl::StatusOr<int64_t> ZipReader::SizeBytes(const std::string& name) const {
  const zip_int64_t index = zip_name_locate(archive_.get(), name.c_str(), 0);
  if (index < 0) return absl::NotFoundError(absl::StrCat("the archive has no member ", name));
  return SizeBytes(static_cast<size_t>(index));
}

absl::StatusOr<std::string> ZipReader::Read(size_t index, int64_t max_bytes, const AdmitBytes& admit) const {
  return ReadMember(archive_.get(), index, names_[index], max_bytes, admit);
}

absl::StatusOr<std::string> ZipReader::Read(const std::string& name, int64_t max_bytes, const AdmitBytes& admit) const {
  const zip_int64_t index = zip_name_locate(archive_.get(), name.c_str(), 0);
  if (index < 0) return absl::NotFoundError(absl::StrCat("the archive has no member ", name));
  return Read(static_cast<size_t>(index), max_bytes, admit);
}

absl::Status ZipReader::ReadTo(const std::string& name, char* to, size_t size) const {
  const zip_int64_t index = zip_name_locate(archive_.get(), name.c_str(), 0);
  const Member file(index < 0 ? nullptr : zip_fopen_index(archive_.get(), static_cast<zip_uint64_t>(index), 0),
                    zip_fclose);
  return file && ReadAll(file.get(), to, size) ? absl::OkStatus() : Damaged(name);
}

absl::Status ZipReader::CheckContent(size_t index, int64_t max_bytes) const {
  CHAINFLEET_ASSIGN_OR_RETURN(size_t left, AdmittedSize(archive_.get(), index, names_[index], max_bytes));
  const Member file(zip_fopen_index(archive_.get(), index, 0), zip_fclose);
  std::vector<char> buffer(kFirstBytes);
  while (file && left > 0) {
    const zip_int64_t came = zip_fread(file.get(), buffer.data(), std::min(left, buffer.size()));
    if (came <= 0) return Damaged(names_[index]);
    left -= static_cast<size_t>(came);
  }
  return file && ReadAll(file.get(), nullptr, 0) ? absl::OkStatus() : Damaged(names_[index]);
}

absl::StatusOr<std::string> WriteZip(const std::vector<std::pair<std::string, std::string>>& members) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  if (target == nullptr) return ZipError("cannot make an archive", &error);
  zip_source_keep(target);  // allows reading the archive after zip_close
  const std::unique_ptr<zip_source_t, void (*)(zip_source_t*)> keep(target, zip_source_free);
  std::unique_ptr<zip_t, void (*)(zip_t*)> archive(zip_open_from_source(target, ZIP_TRUNCATE, &error), zip_discard);
  if (!archive) return ZipError("cannot make an archive", &error);
  for (const auto& [name, content] : members) CHAINFLEET_RETURN_IF_ERROR(AddMember(archive.get(), name, content));
  if (zip_close(archive.get()) != 0)
    return absl::InternalError(absl::StrCat("cannot write the archive: ", zip_strerror(archive.get())));
  (void)archive.release();  // zip_close freed it
  return ReadBack(target);
}

absl::Status WriteZipFile(const std::string& path, const std::vector<ZipMember>& members) {
  int code = 0;
  std::unique_ptr<zip_t, void (*)(zip_t*)> archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code),
                                                   zip_discard);
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  if (!archive) return ZipError("cannot write " + path, &error);
  std::vector<MemberSource> sources;
  for (const ZipMember& member : members) sources.push_back({.member = &member});
  for (MemberSource& source : sources) {
    zip_source_t* const content = zip_source_function(archive.get(), &PassMember, &source);
    const zip_int64_t index = zip_file_add(archive.get(), source.member->name.c_str(), content, ZIP_FL_ENC_UTF_8);
    if (index < 0) zip_source_free(content);
    if (index < 0 || zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) != 0) {
      return ZipError("cannot write " + path, zip_get_error(archive.get()));
    }
  }
  if (zip_close(archive.get()) == 0) {
    (void)archive.release();  // zip_close freed it
    return absl::OkStatus();
  }
  for (const MemberSource& source : sources) CHAINFLEET_RETURN_IF_ERROR(source.status);
  const std::string what = absl::StrCat("cannot write ", path, ": ", zip_strerror(archive.get()));
  return zip_error_code_system(zip_get_error(archive.get())) == ENOSPC ? absl::ResourceExhaustedError(what)
                                                                       : absl::InternalError(what);
}

}  // namespace chainfleet
