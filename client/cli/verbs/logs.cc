#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/verbs/follow.h"
#include "client/cli/verbs/verbs.h"
#include "core/base/escaped.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

struct LogsOptions {
  std::string job;
  bool follow = false;
  std::optional<int32_t> chain;
  absl::Duration since = absl::InfiniteDuration();
  size_t tail = std::numeric_limits<size_t>::max();
};

using Fields = std::map<std::string, std::string>;

// The event in words of users, who know of chains and workers but not of leases. Takes the fields that it tells out of
// `fields`. Programs read the message itself from JSON.
std::string WordsOf(const std::string& message, Fields* fields) {
  const auto take = [&](const char* key) {
    const Fields::node_type found = fields->extract(key);
    return found ? WordOrQuoted(found.mapped()) : "";
  };
  if (message == "lease granted") {
    const std::string step = take("step");
    return absl::StrCat(step == "0" ? "begins" : "continues", " on ", take("worker"), " at step ", step);
  }
  if (message == "lease ended") return absl::StrCat("interrupted on ", take("worker"));
  if (message == "lease preempted") return absl::StrCat("gives way on ", take("worker"));
  return Escaped(std::string(absl::StripPrefix(message, "chain ")));  // "chain 3: succeeded" names it once
}

// "2026-11-26 14:03:17  WARNING  chain 3: interrupted on gpu-7  cause=lost reason="worker gpu-7 did not renew its
// lease"", in local time.
std::string TextOf(const v1::Event& event) {
  Fields fields(event.fields().begin(), event.fields().end());
  fields.erase("lease_epoch");  // for programs: JSON has it
  std::string text = absl::StrCat(absl::FormatTime("%Y-%m-%d %H:%M:%S", FromProto(event.time()), absl::LocalTimeZone()),
                                  "  ", event.level() == v1::Event::WARNING ? "WARNING  " : "INFO     ",
                                  event.has_chain() ? absl::StrCat("chain ", event.chain(), ": ") : "",
                                  WordsOf(event.message(), &fields));
  const char* space = "  ";
  for (const auto& [key, value] : fields) {
    absl::StrAppend(&text, std::exchange(space, " "), key, "=", WordOrQuoted(value));
  }
  return text + "\n";
}

// Prints the events that are newer than `*after`, and moves it on.
absl::Status PrintNew(Invocation* run, Client* client, const LogsOptions& options, int64_t* after) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<v1::Event> events, client->ListEvents(options.job, *after));
  if (events.empty()) return absl::OkStatus();
  const bool first = *after == 0;
  *after = events.back().number();
  const absl::Time begin = run->clock.Wall() - options.since;
  std::erase_if(events, [&](const v1::Event& event) {
    return (options.chain && !(event.has_chain() && event.chain() == *options.chain)) ||
           FromProto(event.time()) < begin;
  });
  const size_t skipped = first && events.size() > options.tail ? events.size() - options.tail : 0;
  for (size_t i = skipped; i < events.size(); ++i) {
    PrintRecord(std::cout, run->format, events[i], absl::StrCat(events[i].number()), [&] { return TextOf(events[i]); });
  }
  return absl::OkStatus();
}

absl::Status Logs(Invocation* run, LogsOptions options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  int64_t after = 0;
  if (options.follow) {
    CHAINFLEET_RETURN_IF_ERROR(client.WatchJob(options.job, run->timeout, [&](const v1::Job& update) {
      if (after == 0) DetachOnInterrupt(options.job = update.id(), "logs -f");
      PrintNew(run, &client, options, &after).IgnoreError();  // the next change or the end repeats it
    }));
  }
  return PrintNew(run, &client, options, &after);
}

}  // namespace

void AddLogs(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<LogsOptions>();
  CLI::App* verb = AddVerb(
      program, run, "logs",
      "Tell what happened to a job since the server started: starts of chains, lost workers, failures, evaluations "
      "(the newest 1,000 events)",
      "  chainfleet logs @latest\n"
      "  chainfleet logs @latest -f                  # until the job ends\n"
      "  chainfleet logs @latest --since 1h --chain 3\n"
      "  chainfleet logs @latest -o json | jq -r 'select(.level == \"WARNING\").message'",
      [=] { return Logs(run, *options); });
  AddJobArgument(verb, &options->job);
  verb->add_flag("-f,--follow", options->follow, "Print new events until the job ends");
  verb->add_option("--chain", options->chain, "Only this chain")->check(CountAtLeast(0))->option_text("INDEX");
  AddDurationOption(verb, "--since", &options->since, "Only events that are younger than this");
  verb->add_option("--tail", options->tail, "Only the newest of the events so far")
      ->check(CountAtLeast(0))
      ->option_text("COUNT");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
