// The chainfleet command line.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/exit_code.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs/verbs.h"
#include "core/base/process_limits.h"
#include "core/base/version.h"

namespace {

// Says what is wrong with the command line, and which help page explains more.
std::string UsageError(const CLI::App& program, const CLI::ParseError& e, int argc, char** argv) {
  std::string words = "chainfleet";
  const CLI::App* verb = &program;
  int depth = 0;
  for (; !verb->get_subcommands().empty(); ++depth) {
    verb = verb->get_subcommands()[0];
    words += " " + verb->get_name();
  }
  const auto verbs = verb->get_subcommands([](const CLI::App*) { return true; });
  std::string what = e.what();
  if (!verbs.empty() && depth + 1 < argc) {
    what = "there is no \"" + words + " " + argv[depth + 1] + "\"";
  } else if (!verbs.empty()) {
    what = words + " needs one of:";
    for (const CLI::App* below : verbs) what += " " + below->get_name();
  } else if (what.ends_with(" missing")) {  // "--point: 1 required TEXT missing"
    what = what.substr(0, what.find(':')) + " needs a value";
  }
  return "error: " + what + "\n" + words + " --help shows how to use it\n";
}

}  // namespace

int main(int argc, char** argv) {
  chainfleet::ForbidCoreDumps();
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);  // gRPC's errors are reported as statuses
  CLI::App program("chainfleet: samples posteriors of neural networks on a fleet of workers and serves their averages",
                   "chainfleet");
  program.require_subcommand(1);
  program.set_version_flag("--version", chainfleet::kVersion);
  program.footer(
      "Examples:\n"
      "  chainfleet up                                              # a server and two workers on this machine\n"
      "  chainfleet dataset put mnist images-idx3-ubyte.gz labels-idx1-ubyte.gz\n"
      "  chainfleet submit deploy/jobs/fashion-emcmc.yaml --follow\n"
      "  chainfleet evaluate @latest --dataset fashion-mnist-test\n\n"
      "chainfleet VERB --help has more. The server is --address, else that of --context or CHAINFLEET_CONTEXT, else\n"
      "CHAINFLEET_ADDRESS, else that of the current context, else 127.0.0.1:7400; the token is CHAINFLEET_TOKEN, else\n"
      "in the file that CHAINFLEET_TOKEN_FILE names, else what the command CHAINFLEET_TOKEN_COMMAND prints, else that\n"
      "of the context. Exit codes: 0 ok, 1 failed, 2 usage or job file, 3 not found, 4 not allowed, 5 unavailable or\n"
      "timeout, 6 lost or damaged data, 130 interrupted. NO_COLOR=1 leaves colours out.");
  chainfleet::Invocation run;
  chainfleet::AddAllVerbs(&program, &run);
  if (argc == 1) {
    std::fputs(program.help().c_str(), stdout);
    return chainfleet::kExitOk;
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return program.exit(e);  // --help, --version
    std::fputs(UsageError(program, e, argc, argv).c_str(), stderr);
    return chainfleet::kExitUsage;
  }
  std::cout.flush();
  if (run.status.ok() && !std::cout) run.status = absl::ResourceExhaustedError("standard output could not be written");
  if (!run.status.ok()) {
    std::fputs(chainfleet::FormatError(run.status, chainfleet::UseColor(stderr)).c_str(), stderr);
  }
  return chainfleet::ExitCodeOf(run.status);
}
