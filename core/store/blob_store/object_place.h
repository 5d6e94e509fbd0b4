// Which store holds the objects of a data directory: a server started on another one would miss every draw.
#pragma once

#include <string>

#include "core/base/file_system.h"
#include "core/base/status.h"

namespace chainfleet {

// The folder blobs/ of the data directory, or the S3 address in its file `objects_in`. Not thread-safe: for the start
// of a server, which has the directory to itself.
class ObjectPlace {
 public:
  // `file_system` outlives this.
  ObjectPlace(FileSystem* file_system, const std::string& data_directory);

  const std::string& folder() const { return folder_; }

  // `url`: empty for the folder. FAILED_PRECONDITION / OTHER_STORE naming where the objects are and both ways out.
  // Names that begin with a dot are not objects.
  absl::Status Check(const std::string& url) const;

  // The random id that the folder keeps in itself, so that it is known again under another path: `fresh` if it has none
  // yet. Any number may ask at once, whoever has the data directory's lock. DATA_LOSS: its file is empty.
  absl::StatusOr<std::string> FolderId(const std::string& fresh) const;

  // Writes the address down, once its store was opened.
  absl::Status Keep(const std::string& url) const;

 private:
  FileSystem* const file_system_;
  const std::string data_directory_, folder_, file_;
};

}  // namespace chainfleet
