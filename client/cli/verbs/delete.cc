#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs/verbs.h"

namespace chainfleet {
namespace {

// Asks on a terminal; otherwise --yes is needed.
absl::Status Confirm(bool yes, const std::string& what) {
  if (yes) return absl::OkStatus();
  if (!IsTerminal(stdin)) {
    return WithReason(absl::InvalidArgumentError(absl::StrCat("deleting ", what, " cannot be undone: say --yes")),
                      kUsageReason);
  }
  std::cerr << "Delete " << what << "? This cannot be undone. [y/N] ";
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes" ? absl::OkStatus() : absl::AbortedError("nothing was deleted");
}

absl::Status DeleteJob(Invocation* run, const std::string& name, bool yes) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client.GetJob(name));
  CHAINFLEET_RETURN_IF_ERROR(Confirm(yes, absl::StrCat("job ", job.id(), " and its ", job.num_draws(), " draws")));
  CHAINFLEET_RETURN_IF_ERROR(
      client.SetIntent(job.id(), v1::Job::DELETE).status());  // by id, because the name may refer to a newer job by now
  std::cout << job.id() << " deleted\n";
  return absl::OkStatus();
}

absl::Status DeleteDataset(Invocation* run, const std::string& name, bool yes) {
  CHAINFLEET_RETURN_IF_ERROR(Confirm(yes, absl::StrCat("data set ", name)));
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_RETURN_IF_ERROR(client.DeleteDataset(name));
  std::cout << name << " deleted\n";
  return absl::OkStatus();
}

absl::Status DeleteModel(Invocation* run, const std::string& name, bool yes) {
  CHAINFLEET_RETURN_IF_ERROR(Confirm(yes, absl::StrCat("model ", name)));
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_RETURN_IF_ERROR(client.DeleteModel(name));
  std::cout << name << " deleted\n";
  return absl::OkStatus();
}

absl::Status DeleteSnapshot(Invocation* run, const std::string& name, int64_t version, bool yes) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client.GetJob(name));
  CHAINFLEET_RETURN_IF_ERROR(Confirm(yes, absl::StrCat("version ", version, " of job ", job.id())));
  CHAINFLEET_RETURN_IF_ERROR(client.DeleteSnapshot(job.id(), version));
  std::cout << "version " << version << " of " << job.id() << " deleted\n";
  return absl::OkStatus();
}

}  // namespace

void AddDelete(CLI::App* program, Invocation* run) {
  struct Options {
    std::string name;
    int64_t version = 0;
    bool yes = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = AddGroup(program, "delete", "Delete a job with its draws, a version of one, a data set or a model");
  CLI::App* job =
      AddVerb(verb, run, "job", "Delete a job and all its draws", "  chainfleet delete job fashion-emcmc-a1b2c3 --yes",
              [=] { return DeleteJob(run, options->name, options->yes); });
  AddJobArgument(job, &options->name);
  CLI::App* dataset = AddVerb(verb, run, "dataset", "Delete a data set that no job uses",
                              "  chainfleet delete dataset fashion-mnist --yes",
                              [=] { return DeleteDataset(run, options->name, options->yes); });
  dataset->add_option("NAME", options->name, "Name of the data set")->required();
  CLI::App* model =
      AddVerb(verb, run, "model", "Delete a stored network that no job uses", "  chainfleet delete model mine --yes",
              [=] { return DeleteModel(run, options->name, options->yes); });
  model->add_option("NAME", options->name, "Name of the model")->required();
  CLI::App* version = AddVerb(verb, run, "version",
                              "Delete a version that no alias names; its draws stay, its number is not used again",
                              "  chainfleet delete version fashion-emcmc 3 --yes",
                              [=] { return DeleteSnapshot(run, options->name, options->version, options->yes); });
  version->alias("snapshot");
  AddJobArgument(version, &options->name);
  version->add_option("VERSION", options->version, "Number of the version")->required()->check(CountAtLeast(1));
  for (CLI::App* app : {job, dataset, model, version}) {
    app->add_flag("--yes", options->yes, "Do not ask");
    AddServerOptions(app, run);
  }
}

}  // namespace chainfleet
