// Contexts: the servers that a person uses, by name, in a configuration file.
//
//   current: lab
//   contexts:
//     lab: {address: "lab-1:7400,lab-2:7400", token_file: ~/.secrets/lab}
//     prod: {address: "prod:7400", token_command: "pass show chainfleet/prod", ca_file: ~/.secrets/prod-ca.crt}
#pragma once

#include <map>
#include <string>

#include "client/lib/client_options.h"
#include "core/base/status.h"

namespace chainfleet {

struct Context {
  std::string address;
  std::string token_file, token_command;     // at most one is set; the command prints the token on stdout
  std::string ca_file, cert_file, key_file;  // as CHAINFLEET_CA_FILE and its like
};

struct Configuration {
  std::string current;  // empty: none
  std::map<std::string, Context> contexts;
};

// CHAINFLEET_CONTEXTS, else $XDG_CONFIG_HOME/chainfleet/config.yaml, else ~/.config/chainfleet/config.yaml.
std::string ConfigurationFile();

// Empty if there is no file. INVALID_ARGUMENT, naming the file: malformed or with an unknown key.
absl::StatusOr<Configuration> ReadConfiguration();
// Replaces the file. Comments in it are lost.
absl::Status WriteConfiguration(const Configuration& configuration);

// `address` decides if it is not empty, then the context of this name, then CHAINFLEET_CONTEXT, CHAINFLEET_ADDRESS, the
// current context, and last the default address. The token of a context comes with it; CHAINFLEET_TOKEN,
// CHAINFLEET_TOKEN_FILE or CHAINFLEET_TOKEN_COMMAND, if set, replaces it, and so do CHAINFLEET_CA_FILE and its like. A
// command runs once in this process, and again when the server refuses its token. NOT_FOUND: no such context.
// FAILED_PRECONDITION: the token's command failed or printed nothing.
absl::StatusOr<ClientOptions> OptionsOfContext(const std::string& context, const std::string& address);

}  // namespace chainfleet
