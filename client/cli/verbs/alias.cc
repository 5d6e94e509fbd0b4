#include <iostream>
#include <memory>

#include "client/cli/verbs/named_content.h"
#include "client/cli/verbs/verbs.h"

namespace chainfleet {
namespace {

absl::Status Set(Invocation* run, const std::string& name, const std::string& job, int64_t version) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Alias alias, client.SetAlias(name, job, version));
  PrintOne(std::cout, run->format, alias, alias.name(), [&] { return AliasTable({alias}).Render(); });
  return absl::OkStatus();
}

absl::Status Delete(Invocation* run, const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_RETURN_IF_ERROR(client.DeleteAlias(name));
  std::cout << name << " deleted\n";
  return absl::OkStatus();
}

}  // namespace

void AddAlias(CLI::App* program, Invocation* run) {
  struct Options {
    std::string name, job;
    int64_t version = 0;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* alias = AddGroup(program, "alias", "Name versions of jobs; predictions take an alias in place of a job");
  CLI::App* set = AddVerb(alias, run, "set", "Point a name at a version; an existing alias moves to the new version",
                          "  chainfleet alias set champion fashion-emcmc --version 3\n"
                          "  chainfleet predict champion --input x.npy",
                          [=] { return Set(run, options->name, options->job, options->version); });
  set->add_option("NAME", options->name, "Name of the alias, not that of a job")->required();
  AddJobArgument(set, &options->job);
  set->add_option("--version", options->version, "Version to name; default: the newest, with all committed draws")
      ->check(CountAtLeast(1))
      ->option_text("NUMBER");
  CLI::App* list = AddVerb(alias, run, "list", "List all aliases", "  chainfleet alias list",
                           [=] { return ListNamed(run, "aliases", AliasTable, &Client::ListAliases); });
  CLI::App* remove = AddVerb(alias, run, "delete", "Delete an alias; its version stays",
                             "  chainfleet alias delete champion", [=] { return Delete(run, options->name); });
  remove->add_option("NAME", options->name, "Name of the alias")->required();
  for (CLI::App* verb : {set, list, remove}) AddServerOptions(verb, run);
  for (CLI::App* verb : {set, list}) AddOutputOption(verb, run);
}

}  // namespace chainfleet
