// What a terminal may be shown that a file or pipe may not: colors, text that is drawn again in place, and how Ctrl-C
// ends.
#pragma once

#include <cstdio>
#include <functional>
#include <string>

namespace chainfleet {

bool IsTerminal(FILE* stream);

// A terminal that understands colors, and NO_COLOR is not set.
bool UseColor(FILE* stream);

// Text at the bottom of a terminal, drawn again in place with each Show; not drawn at all where `stream` is none (or a
// dumb one). The last text stays. Not thread-safe.
class LiveText {
 public:
  explicit LiveText(FILE* stream);

  bool live() const { return live_; }
  // Lines the terminal has; 24 if it does not say.
  int height() const;
  // Lines longer than the terminal is wide are cut; where colors are wanted `paint` adds them to what is left of a line.
  void Show(const std::string& text, const std::function<std::string(std::string)>& paint = {});
  void Clear();

 private:
  FILE* const stream_;
  const bool live_;
  int lines_ = 0;
};

// From now on Ctrl-C and SIGTERM print `message` on stderr and exit 130: nothing runs here that could be lost, the
// server goes on. The newest message counts.
void ExitOnInterrupt(const std::string& message);

}  // namespace chainfleet
