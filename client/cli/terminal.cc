#include "client/cli/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/exit_code.h"
#include "core/base/utf8.h"

namespace chainfleet {
namespace {

bool IsDumb() {
  const char* term = std::getenv("TERM");
  return term == nullptr || std::string(term) == "dumb";
}

winsize SizeOf(FILE* stream) {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    size.ws_row = 24;
    size.ws_col = 80;
  }
  return size;
}

// Read by a signal handler, so messages are never freed; each call of the functions below adds one or two. The first
// of several signals, possibly on several threads at once, takes the message.
std::atomic<const std::string*> interrupt_message, noted_message;

void WriteOnce(std::atomic<const std::string*>* message) {
  const std::string* text = message->exchange(nullptr);
  if (text != nullptr && write(STDERR_FILENO, text->data(), text->size()) < 0) return;  // nobody reads it
}

void OnInterrupt(int) {
  WriteOnce(&interrupt_message);
  _exit(kExitInterrupted);
}

std::atomic<bool> interrupted;

// A terminal sends SIGINT to a program and to the program that runs it, which may then send SIGTERM: one interrupt.
void OnNotedInterrupt(int signal) {
  if (interrupted.exchange(true) && signal == SIGINT) OnInterrupt(signal);
  const int error = errno;
  WriteOnce(&noted_message);
  errno = error;
}

const std::string* Kept(const std::string& message) {
  static auto* const messages = new std::deque<std::string>;  // must outlive every signal
  return &messages->emplace_back(message);
}

void HandleInterrupts(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

bool IsTerminal(FILE* stream) { return isatty(fileno(stream)) != 0; }

size_t WidthOf(FILE* stream) { return IsTerminal(stream) ? SizeOf(stream).ws_col : 0; }

bool UseColor(FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  return IsTerminal(stream) && !IsDumb() && (no_color == nullptr || *no_color == '\0');
}

std::string FirstLines(const std::string& text, int height) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (std::ssize(lines) < std::max(2, height)) return text;
  const int shown = std::max(1, height - 2);
  return absl::StrCat(absl::StrJoin(lines.begin(), lines.begin() + shown, "\n"), "\n... and ",
                      std::ssize(lines) - shown, " more\n");
}

LiveText::LiveText(FILE* stream) : stream_(stream), live_(IsTerminal(stream) && !IsDumb()) {}

int LiveText::height() const { return SizeOf(stream_).ws_row; }
size_t LiveText::width() const { return SizeOf(stream_).ws_col; }

void LiveText::Clear() {
  if (!live_ || lines_ == 0) return;
  std::fprintf(stream_, "\x1b[%dA\x1b[J", lines_);
  std::fflush(stream_);
  lines_ = 0;
}

void LiveText::Show(const std::string& text, const std::function<std::string(std::string)>& paint) {
  if (!live_) return;
  const bool color = paint && UseColor(stream_);
  // One write per picture: separate writes would flicker.
  std::string picture = lines_ == 0 ? "" : absl::StrCat("\x1b[", lines_, "A\x1b[J");
  lines_ = 0;
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    std::string shown = Cropped(std::string(line), width());
    absl::StrAppend(&picture, color ? paint(std::move(shown)) : shown, "\n");
    ++lines_;
  }
  std::fputs(picture.c_str(), stream_);
  std::fflush(stream_);
}

void ExitOnInterrupt(const std::string& message) {
  interrupt_message = Kept(message);
  HandleInterrupts(OnInterrupt);
}

void NoteInterrupt(const std::string& noted, const std::string& message) {
  noted_message = Kept(noted);
  interrupt_message = Kept(message);
  HandleInterrupts(OnNotedInterrupt);
}

bool IsInterrupted() { return interrupted; }

}  // namespace chainfleet
