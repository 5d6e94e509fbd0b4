#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/terminal.h"
#include "client/cli/trace_file.h"
#include "client/cli/verbs/named_content.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/job_view.h"
#include "client/cli/views/resource_view.h"
#include "core/wire/grpc_status.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kBetweenPrints = absl::Seconds(2);

struct GetOptions {
  std::string job, name, state, point, quantity;
  std::optional<int32_t> chain;
  bool watch = false;
};
using SharedOptions = std::shared_ptr<GetOptions>;

absl::Status GetJobs(Invocation* run, const GetOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  const auto table = [&](const std::vector<v1::Job>& jobs) { return JobTable(jobs, run->clock.Wall()); };
  if (!options.job.empty()) {
    CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job found, client.GetJob(options.job));
    PrintOne(*run->out, run->format, found, found.id(), [&] { return Painted(*run, table({found}).Render()); });
    return absl::OkStatus();
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const auto jobs, client.ListJobs(absl::AsciiStrToUpper(options.state)));
  return PrintItems<v1::Job>(run, "jobs", jobs, table);
}

absl::Status GetChains(Invocation* run, const GetOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job found, client.GetJob(options.job));
  return PrintItems<v1::Chain>(run, "chains", {found.chains().begin(), found.chains().end()},
                               [&](const auto&) { return ChainTable(found); });
}

absl::Status GetDraws(Invocation* run, const GetOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  v1::ListSegmentsRequest request;
  request.set_job(options.job);
  if (options.chain) request.set_chain(*options.chain);
  request.set_point(options.point);
  CHAINFLEET_ASSIGN_OR_RETURN(const auto segments, client.ListSegments(request));
  return PrintItems<v1::SegmentRecord>(run, "segments", segments, SegmentTable);
}

absl::Status GetVersions(Invocation* run, const GetOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const auto versions, client.ListSnapshots(options.job));
  return PrintItems<v1::Snapshot>(run, "snapshots", versions,
                                  [&](const auto& items) { return SnapshotTable(items, run->clock.Wall()); });
}

// The error of a word that names neither a job nor an evaluation. `no_job` is what the server says of the job.
absl::Status NoSuchEvaluation(const std::string& word, const absl::Status& no_job) {
  absl::Status neither =
      absl::NotFoundError(absl::StrCat("no evaluation ", word, ", and ", std::string(no_job.message())));
  return WithRequestId(WithReason(std::move(neither), "EVALUATION_NOT_FOUND"), RequestIdOf(no_job));
}

absl::Status GetEvaluations(Invocation* run, const GetOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  auto evaluations = client.ListEvaluations(options.job);
  if (absl::IsNotFound(evaluations.status())) {
    auto one = client.GetEvaluation(options.job);
    if (absl::IsNotFound(one.status())) return NoSuchEvaluation(options.job, evaluations.status());
    CHAINFLEET_RETURN_IF_ERROR(one.status());
    evaluations = {{*std::move(one)}};
  }
  CHAINFLEET_RETURN_IF_ERROR(evaluations.status());
  return PrintItems<v1::EvaluationOperation>(
      run, "evaluations", *evaluations, [&](const auto& items) { return OperationTable(items, run->clock.Wall()); });
}

absl::Status GetTraces(Invocation* run, const GetOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<v1::Traces> traces, ReadTraces(&client, options.job, options.quantity));
  if (run->format == OutputFormat::kCsv) {
    *run->out << TracesCsv(traces) << std::flush;
    return absl::OkStatus();
  }
  return PrintItems<v1::Traces>(run, "traces", traces, TraceTable);
}

// Calls `print` every kBetweenPrints until it fails or the user interrupts. A terminal shows the newest table only.
// Other formats, files and pipes get each output that differs from the one before in more than ages.
absl::Status WatchOutput(Invocation* run, const std::function<absl::Status()>& print) {
  LiveText text(stdout);
  const bool live = run->format == OutputFormat::kTable && text.live();
  const bool paint = run->format == OutputFormat::kWide && UseColor(stdout);
  ExitOnInterrupt("");
  for (std::string shown;;) {
    std::ostringstream out;
    run->out = &out;
    CHAINFLEET_RETURN_IF_ERROR(print());
    if (live) {
      text.Show(FirstLines(out.str(), text.height()), PaintStates);
    } else if (std::string now = WithoutAges(out.str()); now != shown) {
      std::cout << (run->format == OutputFormat::kYaml ? "---\n" : "") << (paint ? PaintStates(out.str()) : out.str())
                << std::flush;
      shown = std::move(now);
    }
    absl::SleepFor(kBetweenPrints);
  }
}

CLI::App* AddKind(CLI::App* get, Invocation* run, const SharedOptions& options, const std::string& plural,
                  const std::string& description, const std::string& examples, std::function<absl::Status()> body) {
  CLI::App* verb = AddVerb(get, run, plural, description, examples, [run, options, body = std::move(body)] {
    return options->watch ? WatchOutput(run, body) : body();
  });
  verb->alias(Singular(plural));
  verb->add_flag("-w,--watch", options->watch, "Print again when something changes, until interrupted");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run, plural == "traces");
  return verb;
}

// Kinds that users find by name.
void AddNamedKinds(CLI::App* get, Invocation* run, const SharedOptions& options) {
  const auto add = [&](const std::string& plural, const std::string& description, auto table, auto list) {
    AddKind(get, run, options, plural, description, absl::StrCat("  chainfleet get ", plural), [=] {
      return ListNamed(run, plural, table, list, options->name);
    })->add_option("NAME", options->name, "Only this one");
  };
  add("datasets", "Stored data sets", DatasetTable, &Client::ListDatasets);
  add("models", "Stored networks", ModelTable, &Client::ListModels);
  add("aliases", "Names of versions", AliasTable, &Client::ListAliases);
  add("workers", "The fleet", WorkerTable, &Client::ListWorkers);
  add("tokens", "Tokens of callers and workers, for admins", TokenTable, &Client::ListTokens);
}

// Kinds that belong to a job.
void AddKindsOfJob(CLI::App* get, Invocation* run, const SharedOptions& options) {
  CLI::App* chains = AddKind(get, run, options, "chains", "The chains of a job: state, step, draws, energy, worker",
                             "  chainfleet get chains @latest -o wide", [=] { return GetChains(run, *options); });
  CLI::App* draws = AddKind(get, run, options, "draws", "The committed segments of draws of a job",
                            "  chainfleet get draws @latest --chain 0\n"
                            "  chainfleet get draws @latest -o jsonl | jq -r .segment.digest",
                            [=] { return GetDraws(run, *options); });
  draws->add_option("--chain", options->chain, "Only this chain")->check(CountAtLeast(0))->option_text("INDEX");
  AddPointOption(draws, &options->point);
  CLI::App* versions = AddKind(get, run, options, "versions", "The versions of a job, and the aliases that name them",
                               "  chainfleet get versions @latest", [=] { return GetVersions(run, *options); });
  versions->alias("snapshots")->alias("snapshot");
  CLI::App* traces = AddKind(get, run, options, "traces", "The newest traced values of a job's chains, by quantity",
                             "  chainfleet get traces @latest --quantity energy\n"
                             "  chainfleet get traces @latest -o csv > traces.csv",
                             [=] { return GetTraces(run, *options); });
  traces->add_option("--quantity", options->quantity, "Only this quantity, as `describe` names it")
      ->option_text("NAME");
  for (CLI::App* verb : {chains, draws, versions, traces}) AddJobArgument(verb, &options->job);
}

}  // namespace

void AddGet(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<GetOptions>();
  CLI::App* get = AddGroup(program, "get",
                           "List jobs, chains, draws, versions, traces, evaluations, data sets, models, aliases, "
                           "workers or tokens");
  CLI::App* jobs = AddKind(get, run, options, "jobs", "All jobs, newest first, or one",
                           "  chainfleet get jobs --state RUNNING\n"
                           "  chainfleet get jobs fashion-emcmc -o json\n"
                           "  chainfleet get jobs -o jsonpath={.jobs[*].id}",
                           [=] { return GetJobs(run, *options); });
  jobs->add_option("JOB", options->job, "Job id, name (the newest job of that name), or @latest");
  jobs->add_option("--state", options->state,
                   "Only jobs in this state: PENDING, RUNNING, PAUSED, SUCCEEDED, FAILED, ...");
  AddKindsOfJob(get, run, options);
  AddKind(get, run, options, "evaluations", "Evaluations of a job, or of all, newest first, or one",
          "  chainfleet get evaluations @latest\n"
          "  chainfleet evaluate --attach $(chainfleet get evaluations -o name | head -1)",
          [=] { return GetEvaluations(run, *options); })
      ->add_option("JOB", options->job, "Job id, name (the newest job of that name), @latest, or an evaluation's id");
  AddNamedKinds(get, run, options);
}

}  // namespace chainfleet
