#include "server/disk_reserve.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/base/limits.h"

namespace chainfleet {
namespace {

// A start uses about 100 KiB: the reserve suffices for many starts in a row.
constexpr int64_t kBytes = 8 * limits::kMiB, kPiece = 64 * limits::kKiB;

}  // namespace

bool DiskReserve::Fill() const {
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return false;
  int64_t held = 0;
  while (held < kBytes && posix_fallocate(file, held, kPiece) == 0) held += kPiece;
  close(file);
  return held == kBytes;
}

void DiskReserve::Release() const { unlink(path_.c_str()); }

}  // namespace chainfleet
