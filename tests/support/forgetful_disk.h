// A disk that loses, with the power, what no fsync has made durable.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "core/base/file_system.h"

namespace chainfleet {

// Files and folders by path. A file's bytes are durable when they were synced, its name when the folder was; an entry
// that is not may survive or not. For one thread; outlives the file systems it gave out.
class ForgetfulDisk {
 public:
  // `root` is a durable empty folder.
  ForgetfulDisk(const std::string& root, uint64_t seed) : random_(seed) { current_[root] = durable_[root] = nullptr; }

  // The disk as one process sees it. Once `alive` is false nothing changes any more and every call is UNAVAILABLE.
  std::unique_ptr<FileSystem> Mount(std::function<bool()> alive);

  void LosePower();

  // No room for bytes: files can be made and are left empty.
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
