// Zip archives in memory or in a file, with libzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/byte_source.h"
#include "core/base/status.h"
#include "core/formats/admit_bytes.h"

struct zip;  // defined by libzip

namespace chainfleet {

// Reads the members of an archive by name. Not thread-safe.
class ZipReader {
 public:
  // INVALID_ARGUMENT if `source` is no archive; names the expected `kind`, such as ".npz".
  static absl::StatusOr<ZipReader> Open(const ByteSource& source, const std::string& kind);

  // Returns the names in the archive's order.
  const std::vector<std::string>& names() const { return names_; }

  // Returns the size that the archive states for member names()[index].
  absl::StatusOr<int64_t> SizeBytes(size_t index) const;
  // Finds the first member with this name; NOT_FOUND if there is none.
  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const;

  // Returns the content of member names()[index]. INVALID_ARGUMENT if the content does not match its CRC;
  // RESOURCE_EXHAUSTED before decoding if it exceeds `max_bytes`; errors of `admit`.
  absl::StatusOr<std::string> Read(size_t index, int64_t max_bytes, const AdmitBytes& admit = AdmitAll) const;
  // Reads the first member with this name; NOT_FOUND if there is none.
  absl::StatusOr<std::string> Read(const std::string& name, int64_t max_bytes,
                                   const AdmitBytes& admit = AdmitAll) const;
  // Reads `size` bytes, the whole first member with this name, to `to`. INVALID_ARGUMENT also for another size.
  absl::Status ReadTo(const std::string& name, char* to, size_t size) const;
  // Reads member names()[index] to its end and drops the bytes. Errors of Read, and its bound.
  absl::Status CheckContent(size_t index, int64_t max_bytes) const;

 private:
  using Archive = std::unique_ptr<zip, void (*)(zip*)>;
  ZipReader(Archive archive, std::vector<std::string> names) : archive_(std::move(archive)), names_(std::move(names)) {}

  Archive archive_;
  std::vector<std::string> names_;
};

// Returns an archive of these members (name, content) without compression. INTERNAL if libzip fails.
absl::StatusOr<std::string> WriteZip(const std::vector<std::pair<std::string, std::string>>& members);

struct ZipMember {
  std::string name;
  int64_t size_bytes = 0;
  std::function<absl::Status(int64_t at, char* to, int64_t count)> read;  // as StreamedArray::read
};

// Writes members of any size, without compression, to the file `path`, which it replaces. Returns the first error of a
// member; RESOURCE_EXHAUSTED for a full disk; INTERNAL names the path if libzip fails otherwise.
absl::Status WriteZipFile(const std::string& path, const std::vector<ZipMember>& members);

}  // namespace chainfleet
