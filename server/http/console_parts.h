// The files of the console, which the build reads from console/ and from Debian's Chart.js (CMakeLists.txt).
#pragma once

namespace chainfleet {

struct ConsoleFile {
  const char* path;
  const char* type;
  const char* text;
};
extern const ConsoleFile kConsoleFiles[4];

}  // namespace chainfleet
