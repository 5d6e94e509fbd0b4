// libFuzzer target: settings files of server and worker, with the parser and the kinds of flags that these use. A file
// that is refused gets a text that names the file, and nothing else than a ParseError is thrown.
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/settings_file.h"

namespace {

// A file without a name, of which only the content changes.
std::string PathOf(const uint8_t* data, size_t size) {
  static const int file = memfd_create("settings", 0);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = PathOf(data, size);
  CLI::App app;
  std::string listen;
  int threads = 0;
  bool insecure = false;
  std::vector<std::string> weights;
  app.add_option("--listen", listen)->check([](const std::string& text) { return text.empty() ? "is empty" : ""; });
  app.add_option("--threads", threads)->check(CLI::Range(0, 1024));
  app.add_option("--scale", listen)->check(CLI::IsMember({"off", "slurm"}));
  app.add_option("--tenant-weight", weights)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--insecure", insecure);
  app.set_config("--config", path);
  app.allow_config_extras(CLI::config_extras_mode::error);
  try {
    app.parse(std::vector<std::string>{});
    if (const absl::Status together = chainfleet::CheckSettingsAreTogether(path); !together.ok()) return 0;
  } catch (const CLI::ParseError& error) {
    if (chainfleet::WithLineOfSettings(path, error.what()).empty()) std::abort();
    return 0;
  }
  if (threads < 0 || threads > 1024) std::abort();
  return 0;
}
