#include "client/cli/context.h"

#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/table.h"

namespace chainfleet {
namespace {

absl::Status Refused(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("there is no context ", name, " in ", ConfigurationFile()));
}

absl::Status List() {
  CHAINFLEET_ASSIGN_OR_RETURN(const Configuration configuration, ReadConfiguration());
  Table table({"CURRENT", "CONTEXT", "ADDRESS", "TOKEN"});
  for (const auto& [name, context] : configuration.contexts) {
    table.AddRow({name == configuration.current ? "*" : "", name, context.address,
                  context.token_command.empty() ? context.token_file : absl::StrCat("from ", context.token_command)});
  }
  std::cout << table.Render();
  return absl::OkStatus();
}

absl::Status Use(const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(Configuration configuration, ReadConfiguration());
  if (!configuration.contexts.contains(name)) return Refused(name);
  configuration.current = name;
  return WriteConfiguration(configuration);
}

absl::Status Set(const std::string& name, const Context& context) {
  const auto addresses = ParseAddresses(context.address);
  if (!addresses.ok()) return WithReason(addresses.status(), kUsageReason);
  CHAINFLEET_ASSIGN_OR_RETURN(Configuration configuration, ReadConfiguration());
  if (configuration.current.empty()) configuration.current = name;
  configuration.contexts[name] = context;
  return WriteConfiguration(configuration);
}

absl::Status Delete(const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(Configuration configuration, ReadConfiguration());
  if (configuration.contexts.erase(name) == 0) return Refused(name);
  if (configuration.current == name) configuration.current.clear();
  return WriteConfiguration(configuration);
}

}  // namespace

void AddContext(CLI::App* program, Invocation* run) {
  struct Options {
    std::string name;
    Context context;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* group = AddGroup(program, "context", "Name the servers that you use, and choose one of them");
  AddVerb(group, run, "list", "List the known servers", "  chainfleet context list", List);
  CLI::App* use = AddVerb(group, run, "use", "Use this server from now on", "  chainfleet context use lab",
                          [=] { return Use(options->name); });
  CLI::App* set = AddVerb(group, run, "set", "Add or replace a server; the first one becomes the current one",
                          "  chainfleet context set lab --address lab-1:7400,lab-2:7400 --token-file ~/.secrets/lab\n"
                          "  chainfleet context set prod --address prod:7400 --token-command \"pass show prod\"",
                          [=] { return Set(options->name, options->context); });
  set->add_option("--address", options->context.address, "HOST:PORT of the server, or several with commas")->required();
  CLI::Option* file = set->add_option("--token-file", options->context.token_file, "File with the token in it");
  set->add_option("--token-command", options->context.token_command, "Shell command that prints the token")
      ->excludes(file);
  set->add_option("--ca-file", options->context.ca_file,
                  "Certificates that sign the server's, in PEM form; system: those of this host; default: no TLS");
  set->add_option("--cert-file", options->context.cert_file, "Client certificate, if the server requires one");
  set->add_option("--key-file", options->context.key_file, "Private key of the client certificate");
  CLI::App* remove = AddVerb(group, run, "delete", "Forget a server", "  chainfleet context delete lab",
                             [=] { return Delete(options->name); });
  for (CLI::App* verb : {use, set, remove}) verb->add_option("NAME", options->name, "Name of the server")->required();
}

}  // namespace chainfleet
