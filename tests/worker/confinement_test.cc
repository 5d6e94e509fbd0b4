#include "worker/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <functional>
#include <new>
#include <vector>

namespace chainfleet {
namespace {

// Expects that `code` is true in a confined process.
void ExpectConfined(const std::function<bool()>& code) {
  EXPECT_EXIT(
      {
        if (!Confine().ok()) _exit(2);
        _exit(code() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Confinement, DeniesFilesSocketsProcessesAndSignals) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer makes system calls of its own";
#endif
  const pid_t other = getpid();
  char* const arguments[] = {nullptr};
  const std::vector<std::function<int64_t()>> attempts = {
      [] { return open("/proc/self/environ", O_RDONLY); },
      [] { return openat(AT_FDCWD, "/tmp/x", O_CREAT | O_WRONLY, 0600); },
      [] { return socket(AF_INET, SOCK_STREAM, 0); },
      [] { return socketpair(AF_UNIX, SOCK_STREAM, 0, nullptr); },
      [] { return fork(); },
      [&] { return execv("/bin/true", arguments); },
      [&] { return kill(other, 0); },
      [&] { return syscall(SYS_tgkill, other, other, 0); },
      [&] { return ptrace(PTRACE_ATTACH, other, nullptr, nullptr); },
      [] { return prctl(PR_SET_PDEATHSIG, 0); },
      [] { return ftruncate(STDOUT_FILENO, 0); },
      [] { return write(STDERR_FILENO, "x", 1); },
      [] { return memfd_create("x", 0); },
      [] { return dup(STDIN_FILENO); }};
  for (size_t i = 0; i < attempts.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectConfined([&] { return attempts[i]() == -1 && errno == EPERM; });
  }
}

TEST(Confinement, LeavesMemoryClocksAndExceptions) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer makes system calls of its own";
#endif
  ExpectConfined([] {
    std::vector<char> large(64 << 20, 'x');
    void* const code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    timespec now;
    try {
      throw std::bad_alloc();
    } catch (const std::bad_alloc&) {
      return large.back() == 'x' && mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0 &&
             syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == 0;
    }
  });
}

}  // namespace
}  // namespace chainfleet
