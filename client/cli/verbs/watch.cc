#include <algorithm>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs/follow.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/job_view.h"

namespace chainfleet {
namespace {

// Shows how far the chains agree, in at most a third of a terminal's lines, and the chains in the remaining lines.
std::string LiveView(const v1::Job& job, int height, size_t width) {
  constexpr int kHeadAndRest = 2;        // lines of each table
  int left = height - 2 - kHeadAndRest;  // minus the line above, and one for the cursor
  std::string view = ProgressLine(job, width) + "\n";
  if (job.diagnostics_size() > 0) {
    const int rows = std::clamp(job.diagnostics_size(), 1, std::max(1, height / 3));
    absl::StrAppend(&view, DiagnosticTable(job).Render({.max_rows = static_cast<size_t>(rows), .max_width = width}));
    left -= rows + kHeadAndRest;
  }
  return view + ProgressTable(job).Render({.max_rows = static_cast<size_t>(std::max(3, left)), .max_width = width});
}

absl::Status Watch(Invocation* run, const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  LiveText text(stdout);
  const bool live = run->format == OutputFormat::kTable && text.live();
  v1::Job newest;
  CHAINFLEET_RETURN_IF_ERROR(client.WatchJob(job, run->timeout, [&](const v1::Job& update) {
    if (newest.id().empty()) DetachOnInterrupt(update.id());
    newest = update;
    if (!live) {
      PrintRecord(std::cout, run->format, update, update.id(), [&] { return ProgressLine(update) + "\n"; });
      return;
    }
    text.Show(LiveView(update, text.height(), text.width()), PaintStates);
  }));
  return OutcomeOf(newest);
}

}  // namespace

void AddWatch(CLI::App* program, Invocation* run) {
  const auto job = std::make_shared<std::string>();
  CLI::App* verb = AddVerb(program, run, "watch", "Show a live table of a job's chains until the job ends",
                           "  chainfleet watch @latest\n"
                           "  chainfleet watch @latest -o jsonl | jq .num_draws   # one job record per change",
                           [=] { return Watch(run, *job); });
  AddJobArgument(verb, job.get());
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
