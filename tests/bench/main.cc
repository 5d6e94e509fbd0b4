// chainfleet-bench: the main of Google Benchmark, with --version.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string_view>

#include "core/base/lock_order_check.h"
#include "core/base/version.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::puts(chainfleet::kVersion);
    return 0;
  }
  chainfleet::DisableLockOrderCheck();  // as the programs do
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
