// Loaded into a server or a worker by LD_PRELOAD, between the program and the C library, so that tests use the
// unchanged product.
//
//   CHAINFLEET_FAULT_POINT="kill|stop before|after CALL N TEXT"   the process gets SIGKILL or SIGSTOP right before or
//       after its N-th CALL whose subject contains TEXT. CALL and its subject: sync (fsync, fdatasync; the file's
//       path), rename (the new path), remove (the path), send (sendmsg; the bytes). TEXT is the rest.
//   CHAINFLEET_FAULT_CLOCK=FILE    CLOCK_REALTIME is wrong by the seconds in FILE (8 bytes, an int64), which may change
//       at any moment. Waits until a time of that clock (Abseil's futexes) end when it says so.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

namespace {

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

[[noreturn]] void Refuse(const char* what) {
  fprintf(stderr, "fault shim: %s\n", what);
  _exit(97);
}

struct Point {
  bool armed = false, before = false;
  int signal = 0, number = 0;
  std::string call, text;
  std::atomic<int> seen = 0;
};

Point* ThePoint() {
  static Point* const point = [] {
    auto* p = new Point;
    const char* wanted = getenv("CHAINFLEET_FAULT_POINT");
    if (wanted == nullptr) return p;
    std::istringstream in(wanted);
    std::string fate, when;
    if (!(in >> fate >> when >> p->call >> p->number) || in.get() != ' ' || !std::getline(in, p->text, '\0')) {
      Refuse("CHAINFLEET_FAULT_POINT is not kill|stop before|after CALL N TEXT");
    }
    p->signal = fate == "stop" ? SIGSTOP : SIGKILL;
    p->before = when == "before";
    p->armed = true;
    return p;
  }();
  return point;
}

// Runs `call`, and dies or stops before or after it if this call is the chosen one.
template <typename Call>
auto Through(const char* name, std::string_view subject, Call call) {
  Point* const point = ThePoint();
  const bool here = point->armed && point->call == name && subject.find(point->text) != std::string_view::npos &&
                    ++point->seen == point->number;
  if (here && point->before) kill(getpid(), point->signal);
  const auto result = call();
  const int error = errno;
  if (here && !point->before) kill(getpid(), point->signal);
  errno = error;
  return result;
}

std::string PathOf(int descriptor) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = readlink(link.c_str(), path, sizeof path);
  return std::string(path, size < 0 ? 0 : static_cast<size_t>(size));
}

// Returns the seconds to add to CLOCK_REALTIME.
int64_t Offset() {
  static const std::atomic<int64_t>* const offset = [] {
    const char* file = getenv("CHAINFLEET_FAULT_CLOCK");
    if (file == nullptr) return static_cast<const std::atomic<int64_t>*>(new std::atomic<int64_t>(0));
    const int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    void* const page = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, descriptor, 0);
    if (page == MAP_FAILED) Refuse("CHAINFLEET_FAULT_CLOCK cannot be read");
    return static_cast<const std::atomic<int64_t>*>(page);
  }();
  return offset->load(std::memory_order_relaxed);
}

using ClockGettime = int (*)(clockid_t, timespec*);
using Syscall = long (*)(long, ...);

timespec RealNow() {
  static const auto next = Next<ClockGettime>("clock_gettime");
  timespec now{};
  next(CLOCK_REALTIME, &now);
  return now;
}

bool Earlier(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

// Waits until `deadline` of the wrong clock in slices of the right clock, because the wrong clock may change meanwhile.
long WaitByWrongClock(Syscall next, long address, long operation, long value, const timespec& deadline, long mask) {
  constexpr long kSliceNanoseconds = 20'000'000;
  for (;;) {
    timespec until = deadline;
    until.tv_sec -= Offset();
    timespec slice = RealNow();
    if (!Earlier(slice, until)) {
      errno = ETIMEDOUT;
      return -1;
    }
    slice.tv_nsec += kSliceNanoseconds;
    slice.tv_sec += slice.tv_nsec / 1'000'000'000;
    slice.tv_nsec %= 1'000'000'000;
    if (Earlier(slice, until)) until = slice;
    const long result = next(SYS_futex, address, operation, value, &until, nullptr, mask);
    if (result == 0 || errno != ETIMEDOUT) return result;
  }
}

}  // namespace

extern "C" {

int fsync(int descriptor) {
  static const auto next = Next<int (*)(int)>("fsync");
  return Through("sync", PathOf(descriptor), [&] { return next(descriptor); });
}

int fdatasync(int descriptor) {
  static const auto next = Next<int (*)(int)>("fdatasync");
  return Through("sync", PathOf(descriptor), [&] { return next(descriptor); });
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  static const auto next = Next<int (*)(int, const char*, int, const char*, unsigned)>("renameat2");
  return Through("rename", to, [&] { return next(from_folder, from, to_folder, to, flags); });
}

int unlink(const char* path) noexcept {
  static const auto next = Next<int (*)(const char*)>("unlink");
  return Through("remove", path, [&] { return next(path); });
}

ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  static const auto next = Next<ssize_t (*)(int, const msghdr*, int)>("sendmsg");
  std::string bytes;
  for (size_t i = 0; ThePoint()->call == "send" && i < message->msg_iovlen; ++i) {
    bytes.append(static_cast<const char*>(message->msg_iov[i].iov_base), message->msg_iov[i].iov_len);
  }
  return Through("send", bytes, [&] { return next(descriptor, message, flags); });
}

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static const auto next = Next<ClockGettime>("clock_gettime");
  const int result = next(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += Offset();
  return result;
}

int gettimeofday(timeval* now, void*) noexcept {
  const timespec real = RealNow();
  *now = {real.tv_sec + Offset(), real.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* out) noexcept {
  const time_t now = RealNow().tv_sec + Offset();
  if (out != nullptr) *out = now;
  return now;
}

long syscall(long number, ...) noexcept {
  // No guarded static: a thread that waits for its guard would call this function.
  static constinit std::atomic<Syscall> known = nullptr;
  Syscall next = known.load(std::memory_order_relaxed);
  if (next == nullptr) known.store(next = Next<Syscall>("syscall"), std::memory_order_relaxed);
  long a[6];
  va_list list;
  va_start(list, number);
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) != 0 && a[3] != 0) {
    return WaitByWrongClock(next, a[0], a[1], a[2], *reinterpret_cast<const timespec*>(a[3]), a[5]);
  }
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
}
