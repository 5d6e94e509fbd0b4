#include "client/cli/invocation.h"

#include <iostream>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/context.h"
#include "client/cli/exit_code.h"
#include "client/cli/json_path.h"
#include "core/base/random_bits.h"

namespace chainfleet {
namespace {

// absl::ParseDuration, and whole days before the other units: 7d, 1d12h.
bool ParseWithDays(const std::string& text, absl::Duration* value) {
  const size_t end = text.find('d');
  if (end == text.npos) return absl::ParseDuration(text, value);
  const std::string shorter = text.substr(end + 1);
  uint32_t days = 0;
  absl::Duration rest;
  if (!absl::SimpleAtoi(text.substr(0, end), &days)) return false;
  if (!shorter.empty() && (!absl::ParseDuration(shorter, &rest) || rest < absl::ZeroDuration())) return false;
  *value = days * absl::Hours(24) + rest;
  return true;
}

}  // namespace

absl::StatusOr<Client> Invocation::Connect() const {
  return ConnectTo(address, timeout, [](const absl::Status& status) {
    std::cerr << "no answer yet, trying again until --timeout: " << std::string(status.message()) << std::endl;
  });
}

absl::StatusOr<Client> Invocation::ConnectTo(const std::string& server, absl::Duration call_timeout,
                                             std::function<void(const absl::Status&)> on_outage,
                                             bool with_token) const {
  auto options = OptionsOfContext(context, server);
  if (!options.ok()) return WithReason(options.status(), kUsageReason);
  if (call_timeout < absl::InfiniteDuration()) options->timeout = call_timeout;
  if (timeout < absl::InfiniteDuration()) options->transfer_timeout = timeout;
  options->seed = RandomBits();
  if (!with_token) {
    options->token = {};
    options->renew_token = nullptr;
  }
  if (on_outage) options->on_outage = std::move(on_outage);
  return Client(*std::move(options), &clock,
                [](absl::Duration wait) { std::this_thread::sleep_for(absl::ToChronoNanoseconds(wait)); });
}

CLI::App* AddVerb(CLI::App* parent, Invocation* run, const std::string& name, const std::string& description,
                  const std::string& examples, std::function<absl::Status()> body) {
  CLI::App* verb = parent->add_subcommand(name, description);
  verb->footer("Examples:\n" + examples);
  verb->callback([run, body = std::move(body)] { run->status = body(); });
  return verb;
}

CLI::App* AddGroup(CLI::App* program, const std::string& name, const std::string& description) {
  CLI::App* group = program->add_subcommand(name, description);
  group->require_subcommand(1);
  group->footer("chainfleet " + name + " SUBCOMMAND --help has more.");
  return group;
}

void AddServerOptions(CLI::App* verb, Invocation* run) {
  verb->add_option("--address", run->address,
                   "HOST:PORT of the server, or several with commas [CHAINFLEET_ADDRESS, else 127.0.0.1:7400]");
  verb->add_option("--context", run->context, "Server by its name in the configuration [CHAINFLEET_CONTEXT]")
      ->option_text("NAME");
  AddDurationOption(verb, "--timeout", &run->timeout, "Give up after this long (30s, 2m); exit code 5");
}

void AddOutputOption(CLI::App* verb, Invocation* run, bool csv) {
  const std::string formats = absl::StrCat("wide, json, jsonl, yaml, ", csv ? "csv, " : "", "name");
  verb->add_option_function<std::string>(
          "-o",
          [run, csv, formats](const std::string& text) {
            const std::optional<OutputFormat> format = ParseOutputFormat(text);
            if (!format || (*format == OutputFormat::kCsv && !csv)) {
              throw CLI::ValidationError("-o", "\"" + text + "\" is not one of table, " + formats + ", jsonpath=PATH");
            }
            if (*format == OutputFormat::kJsonPath) {
              if (const std::string wrong = CheckJsonPath(format->path); !wrong.empty()) {
                throw CLI::ValidationError("-o", wrong);
              }
            }
            run->format = *format;
          },
          absl::StrCat("Output: table (default), ", formats, " or jsonpath=PATH"))
      ->option_text("FORMAT");
}

CLI::Validator CountAtLeast(int64_t least) {
  return CLI::Validator(
      [least](const std::string& text) {
        int32_t value = 0;
        if (absl::SimpleAtoi(text, &value) && value >= least) return std::string();
        return absl::StrCat("\"", text, "\" is not a whole number from ", least, " to ",
                            std::numeric_limits<int32_t>::max());
      },
      "");
}

CLI::Validator EndsInNpzOrCsv() {
  return CLI::Validator(
      [](const std::string& path) {
        const bool known = path.ends_with(".npz") || path.ends_with(".csv");
        return known ? "" : "\"" + path + "\" ends in neither .npz nor .csv, the formats that are written";
      },
      "");
}

CLI::Option* AddJobArgument(CLI::App* verb, std::string* job) {
  return verb->add_option("JOB", *job, "Job id, name (the newest job of that name), or @latest")
      ->required()
      ->type_name("");
}

CLI::Option* AddPointOption(CLI::App* verb, std::string* point) {
  return verb
      ->add_option("--point", *point, "Point of the job's sweep, by number (3) or values (temperature=1,eta=0.001)")
      ->option_text("POINT");
}

CLI::Option* AddDurationOption(CLI::App* verb, const std::string& name, absl::Duration* value,
                               const std::string& description) {
  return verb
      ->add_option_function<std::string>(
          name,
          [name, value](const std::string& text) {
            if (!ParseWithDays(text, value) || *value <= absl::ZeroDuration()) {
              throw CLI::ValidationError(name, "\"" + text + "\" is not a duration: write 30s, 1h30m or 7d");
            }
          },
          description)
      ->option_text("DURATION");
}

}  // namespace chainfleet
