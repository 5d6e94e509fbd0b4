#include <iostream>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/exit_code.h"
#include "client/cli/job_file.h"
#include "client/cli/verbs/follow.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/job_view.h"
#include "core/base/file_system.h"
#include "core/base/random_bits.h"

namespace chainfleet {
namespace {

struct SubmitOptions {
  std::string file;
  std::string request_id;
  bool follow = false;
  bool dry_run = false;
};

absl::StatusOr<JobFile> ReadJobFile(const std::string& path) {
  if (path == "-") {
    return ParseJobFile("stdin", std::string(std::istreambuf_iterator<char>(std::cin), {}));
  }
  const auto text = RealFileSystem()->Read(path);
  if (!text.ok()) return WithReason(Annotate(text.status(), "job file"), kUsageReason);
  return ParseJobFile(path, *text);
}

absl::Status CheckOptions(const SubmitOptions& options) {
  const auto usage = [](const char* message) { return WithReason(absl::InvalidArgumentError(message), kUsageReason); };
  if (options.file.empty()) return usage("name a job file: chainfleet submit job.yaml");
  if (options.dry_run && options.follow) return usage("--dry-run makes no job to --follow: leave one of the two out");
  return absl::OkStatus();
}

absl::Status Submit(Invocation* run, const SubmitOptions& options) {
  CHAINFLEET_RETURN_IF_ERROR(CheckOptions(options));
  CHAINFLEET_ASSIGN_OR_RETURN(const JobFile file, ReadJobFile(options.file));
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  v1::CreateJobRequest request;
  *request.mutable_spec() = file.spec;
  request.set_validate_only(options.dry_run);
  // Always set a request id: a retry after a lost reply must not create a second job.
  request.set_request_id(options.request_id.empty() ? absl::StrFormat("%016x", RandomBits()) : options.request_id);
  auto job = client.CreateJob(request);
  if (!job.ok()) return LocateInJobFile(file, job.status());
  if (options.dry_run) {
    PrintOne(std::cout, run->format, *job, job->spec().name(), [&] {
      const v1::JobSpec& spec = job->spec();
      return absl::StrCat(file.name, " is a valid job: ", DescribePosterior(*job), "\nIt stores ", DescribeStored(*job),
                          spec.has_until() ? "\nIt ends early when " + DescribeUntil(spec.until()) : "", "\n");
    });
    return absl::OkStatus();
  }
  // Print the id at once, so that it is not lost if following is interrupted. Records wait for the final state.
  const bool at_once = run->format == OutputFormat::kTable || run->format == OutputFormat::kName;
  if (at_once || !options.follow) PrintOne(std::cout, run->format, *job, job->id(), [&] { return job->id() + "\n"; });
  if (run->format == OutputFormat::kTable) std::cerr << job->id() << " stores " << DescribeStored(*job) << "\n";
  if (!options.follow) return absl::OkStatus();
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job done, FollowJob(&client, job->id(), run->timeout));
  if (!at_once) PrintOne(std::cout, run->format, done, done.id(), nullptr);
  return OutcomeOf(done);
}

}  // namespace

void AddSubmit(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<SubmitOptions>();
  CLI::App* verb =
      AddVerb(program, run, "submit", "Create a sampling job from a YAML or JSON file and print its id",
              "  chainfleet submit deploy/jobs/fashion-emcmc.yaml --follow\n"
              "  job=$(chainfleet submit job.yaml -o name)\n"
              "  chainfleet submit job.yaml --dry-run           # all checks of the server, nothing stored",
              [=] { return Submit(run, *options); });
  CLI::Option* file = verb->add_option("FILE", options->file, "Job file; - reads standard input")->type_name("");
  verb->add_option("-f,--file", options->file, "The job file, as an option")->option_text("FILE")->excludes(file);
  verb->add_flag("--follow", options->follow, "Show progress until the job is final; exit code 1 if it FAILED");
  verb->add_option("--request-id", options->request_id,
                   "Repeat the same id to get the same job instead of a second one")
      ->option_text("ID");
  verb->add_flag("--dry-run", options->dry_run, "Validate on the server only");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
