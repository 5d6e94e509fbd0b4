// A disk that loses all unsynced data when the power fails.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "core/base/file_system.h"

namespace chainfleet {

// Files and folders by path. A file's bytes are durable after the file's sync, its name after the folder's sync; other
// entries may or may not survive. For one thread; outlives the file systems that it mounts.
class ForgetfulDisk {
 public:
  // `root` is a durable empty folder.
  ForgetfulDisk(const std::string& root, uint64_t seed) : random_(seed) { current_[root] = durable_[root] = nullptr; }

  // Returns the disk as one process sees it. When `alive` is false, nothing changes any more and every call is
  // UNAVAILABLE.
  std::unique_ptr<FileSystem> Mount(std::function<bool()> alive);

  void LosePower();

  // Sets the disk full: files can be created but stay empty.
  void SetFull(bool full) { full_ = full; }

  // Runs before each change to the disk, and once in the middle of a file's bytes: the process may die there.
  void BeforeEachChange(std::function<void()> hook) { before_change_ = std::move(hook); }

 private:
  class View;
  using Entries = std::map<std::string, std::shared_ptr<const std::string>>;  // null: a folder

  Entries current_, durable_;
  bool full_ = false;
  std::function<void()> before_change_ = [] {};
  std::mt19937_64 random_;
};

}  // namespace chainfleet
