// One run of the command line: the state that all verbs share, and the result of the chosen verb.
#pragma once

#include <cstdint>
#include <functional>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "client/cli/output.h"
#include "client/lib/client.h"
#include "core/base/clock.h"
#include "core/base/status.h"

namespace chainfleet {

struct Invocation {
  SystemClock clock;
  std::string address;                                // empty: the environment's or the default
  absl::Duration timeout = absl::InfiniteDuration();  // --timeout, if given
  std::string context;                                // --context; empty: the environment's or the current one
  OutputFormat format;
  std::ostream* out = &std::cout;  // where `get` prints
  absl::Status status;

  // A client of the chosen server, which tells the user when it retries calls. INVALID_ARGUMENT / USAGE: malformed
  // address.
  absl::StatusOr<Client> Connect() const;
  absl::StatusOr<Client> ConnectTo(const std::string& server, absl::Duration call_timeout,
                                   std::function<void(const absl::Status&)> on_outage = nullptr,
                                   bool with_token = true) const;
};

// Adds a verb below `parent`: one line of description, examples for the help text, and its function.
CLI::App* AddVerb(CLI::App* parent, Invocation* run, const std::string& name, const std::string& description,
                  const std::string& examples, std::function<absl::Status()> body);

// Adds a word with verbs below it: get jobs, get chains.
CLI::App* AddGroup(CLI::App* program, const std::string& name, const std::string& description);

// --address and --timeout.
void AddServerOptions(CLI::App* verb, Invocation* run);
// -o, the format of the output; `csv` for verbs that write it.
void AddOutputOption(CLI::App* verb, Invocation* run, bool csv = false);
// Checks for a whole number of at least `least` that an int32 can hold. CLI11's own check for positive numbers prints
// the range of a double.
CLI::Validator CountAtLeast(int64_t least);

// Checks a file to write.
CLI::Validator EndsInNpzOrCsv();

// The positional JOB.
CLI::Option* AddJobArgument(CLI::App* verb, std::string* job);

// --point, for a job with a sweep, whose points are separate posteriors.
CLI::Option* AddPointOption(CLI::App* verb, std::string* point);
// A positive duration such as 30s, 1h30m, 7d or 1d12h.
CLI::Option* AddDurationOption(CLI::App* verb, const std::string& name, absl::Duration* value,
                               const std::string& description);

}  // namespace chainfleet
