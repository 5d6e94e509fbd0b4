#include <iostream>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/job_view.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

template <typename Items>
std::vector<const google::protobuf::Message*> Pointers(const Items& items) {
  std::vector<const google::protobuf::Message*> pointers;
  for (const auto& item : items) pointers.push_back(&item);
  return pointers;
}

absl::Status GetJobs(Invocation* run, const std::string& job, const std::string& state) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  if (!job.empty()) {
    CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job found, client.GetJob(job));
    PrintOne(std::cout, run->format, found, found.id(), [&] { return JobTable({found}, run->clock.Wall()).Render(); });
    return absl::OkStatus();
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const auto jobs, client.ListJobs(absl::AsciiStrToUpper(state)));
  Listing listing{"jobs", Pointers(jobs), {}, JobTable(jobs, run->clock.Wall()).Render()};
  for (const v1::Job& item : jobs) listing.names.push_back(item.id());
  PrintList(std::cout, run->format, listing);
  return absl::OkStatus();
}

absl::Status GetChains(Invocation* run, const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job found, client.GetJob(job));
  Listing listing{"chains", Pointers(found.chains()), {}, ChainTable(found).Render()};
  for (const v1::Chain& chain : found.chains())
    listing.names.push_back(absl::StrCat(found.id(), "/", chain.id().index()));
  PrintList(std::cout, run->format, listing);
  return absl::OkStatus();
}

absl::Status GetDraws(Invocation* run, const std::string& job, std::optional<int32_t> chain, const std::string& point) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  v1::ListSegmentsRequest request;
  request.set_job(job);
  if (chain) request.set_chain(*chain);
  if (!point.empty()) request.set_point(point);
  CHAINFLEET_ASSIGN_OR_RETURN(const auto segments, client.ListSegments(request));
  Listing listing{"segments", Pointers(segments), {}, SegmentTable(segments).Render()};
  for (const v1::SegmentRecord& record : segments) listing.names.push_back(record.segment().object().name());
  PrintList(std::cout, run->format, listing);
  return absl::OkStatus();
}

absl::Status GetSnapshots(Invocation* run, const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const auto snapshots, client.ListSnapshots(job));
  Listing listing{"snapshots", Pointers(snapshots), {}, SnapshotTable(snapshots, run->clock.Wall()).Render()};
  for (const v1::Snapshot& snapshot : snapshots) listing.names.push_back(absl::StrCat(snapshot.version()));
  PrintList(std::cout, run->format, listing);
  return absl::OkStatus();
}

absl::Status GetWorkers(Invocation* run) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const auto workers, client.ListWorkers());
  Table table({"WORKER", "HOST", "DEVICE", ">CHAINS", ">SLOTS", ">LAST SYNC", "SERVING", "DRAINING"});
  Listing listing{"workers", Pointers(workers), {}, ""};
  for (const v1::Worker& worker : workers) {
    listing.names.push_back(worker.id());
    table.AddRow({worker.id(), worker.host(), worker.device(), absl::StrCat(worker.chains()),
                  absl::StrCat(worker.chain_slots()), absl::StrCat(Fixed(worker.seconds_since_sync(), 1), "s"),
                  worker.serving() ? "yes" : "no", worker.draining() ? "yes" : "no"});
  }
  listing.table = table.Render();
  PrintList(std::cout, run->format, listing);
  return absl::OkStatus();
}

absl::Status GetEvaluations(Invocation* run, const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const auto evaluations, client.ListEvaluations(job));
  Table table({"EVALUATION", "JOB", ">VERSION", "DATASET", "STATE", ">AGE", "ERROR"});
  Listing listing{"evaluations", Pointers(evaluations), {}, ""};
  for (const v1::EvaluationOperation& item : evaluations) {
    listing.names.push_back(item.id());
    table.AddRow({item.id(), item.job_id(), absl::StrCat(item.request().selection().version()),
                  item.request().dataset(), v1::EvaluationOperation::State_Name(item.state()),
                  FormatAge(run->clock.Wall() - FromProto(item.created_at())), item.error()});
  }
  listing.table = table.Render();
  PrintList(std::cout, run->format, listing);
  return absl::OkStatus();
}

CLI::App* AddResource(CLI::App* get, Invocation* run, const std::string& name, const std::string& description,
                      const std::string& examples, std::function<absl::Status()> body) {
  CLI::App* verb = AddVerb(get, run, name, description, examples, std::move(body));
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
  return verb;
}

}  // namespace

void AddGet(CLI::App* program, Invocation* run) {
  struct Options {
    std::string job, state, point;
    std::optional<int32_t> chain;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* get = AddGroup(program, "get", "List jobs, chains, draws, snapshots, evaluations or workers");
  CLI::App* jobs = AddResource(get, run, "jobs", "All jobs, newest first, or one",
                               "  chainfleet get jobs --state RUNNING\n"
                               "  chainfleet get jobs fashion-emcmc -o json",
                               [=] { return GetJobs(run, options->job, options->state); });
  jobs->add_option("JOB", options->job, "Job id, name (the newest job of that name), or @latest");
  jobs->add_option("--state", options->state,
                   "Only jobs in this state: PENDING, RUNNING, PAUSED, SUCCEEDED, FAILED, ...");
  CLI::App* chains = AddResource(get, run, "chains", "The chains of a job: state, step, draws, energy, worker",
                                 "  chainfleet get chains @latest", [=] { return GetChains(run, options->job); });
  AddJobArgument(chains, &options->job);
  CLI::App* draws = AddResource(get, run, "draws", "The committed segments of draws of a job",
                                "  chainfleet get draws @latest --chain 0\n"
                                "  chainfleet get draws @latest -o jsonl | jq -r .segment.digest",
                                [=] { return GetDraws(run, options->job, options->chain, options->point); });
  AddJobArgument(draws, &options->job);
  draws->add_option("--chain", options->chain, "Only this chain")->option_text("INDEX");
  AddPointOption(draws, &options->point);
  AddResource(get, run, "evaluations", "Evaluations of a job, or of all, newest first",
              "  chainfleet get evaluations @latest\n"
              "  chainfleet evaluate --attach $(chainfleet get evaluations -o name | head -1)",
              [=] { return GetEvaluations(run, options->job); })
      ->add_option("JOB", options->job, "Job id, name (the newest job of that name), or @latest");
  CLI::App* snapshots =
      AddResource(get, run, "snapshots", "The versions of a job, and the aliases that name them",
                  "  chainfleet get snapshots @latest", [=] { return GetSnapshots(run, options->job); });
  AddJobArgument(snapshots, &options->job);
  AddResource(get, run, "workers", "The fleet", "  chainfleet get workers", [=] { return GetWorkers(run); });
}

}  // namespace chainfleet
