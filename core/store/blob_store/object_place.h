// Remembers which store holds the objects of a data directory: a server with another store would miss every draw.
#pragma once

#include <string>

#include "core/base/file_system.h"
#include "core/base/status.h"

namespace chainfleet {

// The folder blobs/ of the data directory, or the S3 address in its file `objects_in`. A server uses the class at its
// start, when it has the directory to itself. Not thread-safe.
class ObjectPlace {
 public:
  // `file_system` outlives this object.
  ObjectPlace(FileSystem* file_system, const std::string& data_directory);

  const std::string& folder() const { return folder_; }

  // `url` is the S3 address; empty means the folder. FAILED_PRECONDITION / OTHER_STORE: the error names the place of
  // the objects and both ways out. Names that begin with a dot are not objects.
  absl::Status Check(const std::string& url) const;

  // The random id that the folder keeps in itself, so that it is recognised under another path; `fresh` becomes the id
  // if there is none yet. Processes may call this concurrently, with or without the data directory's lock. DATA_LOSS:
  // the id file is empty.
  absl::StatusOr<std::string> FolderId(const std::string& fresh) const;

  // Stores the address. Call after the store of the address was opened.
  absl::Status Keep(const std::string& url) const;

 private:
  FileSystem* const file_system_;
  const std::string data_directory_, folder_, file_;
};

}  // namespace chainfleet
