// Zip archives in memory, by libzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/limits.h"
#include "core/base/status.h"
#include "core/formats/admit_bytes.h"

struct zip;  // libzip's

namespace chainfleet {

// The members of an archive by name. Not thread-safe.
class ZipReader {
 public:
  // `bytes` must outlive it. INVALID_ARGUMENT if they are no archive; `kind` names what was expected: ".npz".
  static absl::StatusOr<ZipReader> Open(const std::string& bytes, const std::string& kind);

  // Names in the archive's order.
  const std::vector<std::string>& names() const { return names_; }

  // The content of member names()[index]. INVALID_ARGUMENT if it does not match its CRC, RESOURCE_EXHAUSTED, before
  // anything is decoded, if it is over `max_bytes`; errors of `admit`.
  absl::StatusOr<std::string> Read(size_t index, int64_t max_bytes, const AdmitBytes& admit = AdmitAll) const;
  // Reads the first member with this name; NOT_FOUND if there is none.
  absl::StatusOr<std::string> Read(const std::string& name, int64_t max_bytes,
                                   const AdmitBytes& admit = AdmitAll) const;

 private:
  using Archive = std::unique_ptr<zip, void (*)(zip*)>;
  ZipReader(Archive archive, std::vector<std::string> names) : archive_(std::move(archive)), names_(std::move(names)) {}

  Archive archive_;
  std::vector<std::string> names_;
};

// Calls `take(name, content)` for each member, in the archive's order, until it returns an error, which is then
// returned. Errors of ZipReader; all members together may have `max_bytes`.
absl::Status ForEachZipMember(const std::string& bytes, const std::string& kind,
                              const std::function<absl::Status(std::string name, const std::string& content)>& take,
                              int64_t max_bytes = limits::kMaxBlobBytes);

// An archive of these members (name, content), stored without compression. INTERNAL if libzip fails.
absl::StatusOr<std::string> WriteZip(const std::vector<std::pair<std::string, std::string>>& members);

struct ZipMember {
  std::string name;
  int64_t size_bytes = 0;
  std::function<absl::Status(int64_t at, char* to, int64_t count)> read;  // as StreamedArray::read
};

// The file `path`, replacing what is there: these members, stored without compression, of any size. The first error of
// a member; RESOURCE_EXHAUSTED for a full disk, INTERNAL if libzip fails otherwise, naming the path.
absl::Status WriteZipFile(const std::string& path, const std::vector<ZipMember>& members);

}  // namespace chainfleet
