// Output for terminals only: colours, text that is redrawn in place, and the handling of Ctrl-C.
#pragma once

#include <cstdio>
#include <functional>
#include <string>

namespace chainfleet {

bool IsTerminal(FILE* stream);

// Columns of the terminal; 0 if the stream is none.
size_t WidthOf(FILE* stream);

// True if the stream is a terminal with colours and NO_COLOR is not set.
bool UseColor(FILE* stream);

// The first lines of `text`, and the number of the others, so that a terminal of `height` lines shows them all above
// the cursor.
std::string FirstLines(const std::string& text, int height);

// Text at the bottom of a terminal that each Show redraws in place. Nothing is drawn if `stream` is not a terminal, or
// a dumb one. The last text stays. Not thread-safe.
class LiveText {
 public:
  explicit LiveText(FILE* stream);

  bool live() const { return live_; }
  // Lines and columns of the terminal; 24 and 80 if unknown.
  int height() const;
  size_t width() const;
  // Crops lines to the terminal's width. If colours are used, `paint` adds them to what is left of a line.
  void Show(const std::string& text, const std::function<std::string(std::string)>& paint = {});
  void Clear();

 private:
  FILE* const stream_;
  const bool live_;
  int lines_ = 0;
};

// From now on Ctrl-C and SIGTERM print `message` on stderr and exit 130. Nothing is lost: the server continues. The
// newest message counts.
void ExitOnInterrupt(const std::string& message);

// From now on the first Ctrl-C or SIGTERM only prints `noted` and makes IsInterrupted() true, so that the verb cleans
// up. Ctrl-C after that prints `message` and exits 130; SIGTERM does nothing more.
void NoteInterrupt(const std::string& noted, const std::string& message);
bool IsInterrupted();

}  // namespace chainfleet
