#include "core/base/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace chainfleet {
namespace {

// Files of /proc and /sys report no size, so read the stream. A value that is not a number ("max") means no limit.
int64_t LimitIn(const std::string& file) {
  std::string word;
  std::ifstream(file) >> word;
  int64_t bytes = 0;
  return absl::SimpleAtoi(word, &bytes) && bytes > 0 ? bytes : std::numeric_limits<int64_t>::max();
}

// The least limit of the group at `path` below `mount` and of its parents. In a container, `path` may be the host's and
// not exist; then `mount` itself is the container's group.
int64_t LeastLimit(const std::string& mount, std::string path, const std::string& file) {
  int64_t least = LimitIn(mount + "/" + file);
  for (; path.size() > 1; path.resize(path.rfind('/'))) least = std::min(least, LimitIn(mount + path + "/" + file));
  return least;
}

}  // namespace

int64_t HostMemoryBytes(const std::string& root) {
  int64_t least = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  std::ifstream groups(root + "/proc/self/cgroup");  // lines of NUMBER:CONTROLLERS:PATH, version 2 with no controllers
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (words.size() != 3 || !words[2].starts_with('/')) continue;
    const std::vector<std::string> controllers = absl::StrSplit(words[1], ',');
    if (words[1].empty()) {
      least = std::min(least, LeastLimit(root + "/sys/fs/cgroup", words[2], "memory.max"));
    } else if (std::ranges::find(controllers, "memory") != controllers.end()) {
      least = std::min(least, LeastLimit(root + "/sys/fs/cgroup/memory", words[2], "memory.limit_in_bytes"));
    }
  }
  return least;
}

}  // namespace chainfleet
