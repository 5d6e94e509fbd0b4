#include "client/cli/context.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/output_file.h"
#include "core/base/environment.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "yaml-cpp/yaml.h"

namespace chainfleet {
namespace {

constexpr size_t kMaxTokenBytes = 64 * 1024;
constexpr char kTokenCommand[] = "CHAINFLEET_TOKEN_COMMAND";

std::string FromHome(const std::string& path) {
  return path.starts_with("~/") ? EnvironmentVariable("HOME") + path.substr(1) : path;
}

// The keys of a context, in the order in which they are written.
constexpr std::pair<const char*, std::string Context::*> kKeys[] = {
    {"address", &Context::address}, {"token_file", &Context::token_file}, {"token_command", &Context::token_command},
    {"ca_file", &Context::ca_file}, {"cert_file", &Context::cert_file},   {"key_file", &Context::key_file}};

Context ReadContext(const std::string& name, const YAML::Node& node) {
  Context context;
  for (const auto& field : node) {
    const auto key = field.first.as<std::string>();
    const auto* const known = std::ranges::find(kKeys, key, [](const auto& entry) { return entry.first; });
    if (known == std::end(kKeys)) {
      throw YAML::Exception(field.first.Mark(), absl::StrCat("context ", name, " has the unknown key ", key));
    }
    context.*known->second = field.second.as<std::string>();
  }
  if (context.address.empty()) throw YAML::Exception(node.Mark(), absl::StrCat("context ", name, " has no address"));
  if (!context.token_file.empty() && !context.token_command.empty()) {
    throw YAML::Exception(node.Mark(), absl::StrCat("context ", name, " has two tokens"));
  }
  return context;
}

// Returns the output of the command, at most kMaxTokenBytes. `name`: the setting that has the command.
absl::StatusOr<std::string> OutputOf(const std::string& name, const std::string& command) {
  FILE* pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) return absl::FailedPreconditionError(absl::StrCat(name, " cannot start: ", command));
  std::string text;
  std::array<char, 4096> chunk{};
  for (size_t read = 1; read > 0 && text.size() < kMaxTokenBytes;) {
    read = std::fread(chunk.data(), 1, chunk.size(), pipe);
    text.append(chunk.data(), read);
  }
  if (pclose(pipe) == 0) return text;
  return absl::FailedPreconditionError(absl::StrCat(name, " failed: ", command));
}

// Runs the command once in this process, and again if the token that it printed is `refused`: it may ask the user.
absl::StatusOr<std::string> TokenOfCommand(const std::string& name, const std::string& command,
                                           const std::string& refused) {
  static Mutex mutex;
  static std::map<std::string, std::string> printed;  // by command
  MutexLock lock(&mutex);
  const auto known = printed.find(command);
  if (known != printed.end() && known->second != refused) return known->second;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string text, OutputOf(name, command));
  std::string token = FirstWord(text);
  if (token.empty()) return absl::FailedPreconditionError(absl::StrCat(name, " printed nothing: ", command));
  return printed[command] = std::move(token);
}

absl::StatusOr<std::string> TokenInFile(const std::string& path) {
  const absl::StatusOr<std::string> content = RealFileSystem()->Read(FromHome(path));
  if (!content.ok()) return Annotate(content.status(), "token_file");
  return FirstWord(*content);
}

// No effect without a command, or if `options` have a token.
absl::Status TakeTokenOfCommand(const std::string& name, const std::string& command, ClientOptions* options) {
  if (command.empty() || !options->token.Current()->empty()) return absl::OkStatus();
  options->renew_token = [=](const std::string& refused) { return TokenOfCommand(name, command, refused); };
  CHAINFLEET_ASSIGN_OR_RETURN(options->token, options->renew_token(""));
  return absl::OkStatus();
}

}  // namespace

std::string ConfigurationFile() {
  if (const std::string file = EnvironmentVariable("CHAINFLEET_CONTEXTS"); !file.empty()) return file;
  if (const std::string folder = EnvironmentVariable("XDG_CONFIG_HOME"); !folder.empty()) {
    return folder + "/chainfleet/config.yaml";
  }
  return EnvironmentVariable("HOME") + "/.config/chainfleet/config.yaml";
}

absl::StatusOr<Configuration> ReadConfiguration() {
  const std::string file = ConfigurationFile();
  const absl::StatusOr<std::string> text = RealFileSystem()->Read(file);
  if (absl::IsNotFound(text.status())) return Configuration();
  CHAINFLEET_RETURN_IF_ERROR(text.status());
  Configuration configuration;
  try {
    for (const auto& field : YAML::Load(*text)) {
      const auto key = field.first.as<std::string>();
      if (key == "current") {
        configuration.current = field.second.as<std::string>();
      } else if (key == "contexts") {
        for (const auto& entry : field.second) {
          const auto name = entry.first.as<std::string>();
          configuration.contexts[name] = ReadContext(name, entry.second);
        }
      } else {
        throw YAML::Exception(field.first.Mark(), absl::StrCat("unknown key ", key));
      }
    }
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": ", error.what()));
  }
  return configuration;
}

absl::Status WriteConfiguration(const Configuration& configuration) {
  YAML::Node node;
  if (!configuration.current.empty()) node["current"] = configuration.current;
  for (const auto& [name, context] : configuration.contexts) {
    YAML::Node entry;
    for (const auto& [key, member] : kKeys) {
      if (!(context.*member).empty()) entry[key] = context.*member;
    }
    node["contexts"][name] = entry;
  }
  const std::string file = ConfigurationFile();
  CHAINFLEET_RETURN_IF_ERROR(MakeOutputFolder(std::filesystem::path(file).parent_path().string()));
  return WriteOutputFile(file, YAML::Dump(node) + "\n");
}

absl::StatusOr<ClientOptions> OptionsOfContext(const std::string& context, const std::string& address) {
  CHAINFLEET_ASSIGN_OR_RETURN(ClientOptions options, ClientOptionsFromEnvironment(address));
  CHAINFLEET_RETURN_IF_ERROR(TakeTokenOfCommand(kTokenCommand, EnvironmentVariable(kTokenCommand), &options));
  if (!address.empty()) return options;
  std::string name = context.empty() ? EnvironmentVariable("CHAINFLEET_CONTEXT") : context;
  if (name.empty() && !EnvironmentVariable("CHAINFLEET_ADDRESS").empty()) return options;
  CHAINFLEET_ASSIGN_OR_RETURN(const Configuration configuration, ReadConfiguration());
  if (name.empty()) name = configuration.current;
  if (name.empty()) return options;
  const auto found = configuration.contexts.find(name);
  if (found == configuration.contexts.end()) {
    return absl::NotFoundError(absl::StrCat(
        "there is no context ", name, " in ", ConfigurationFile(), "; known: ",
        configuration.contexts.empty() ? "none" : absl::StrJoin(configuration.contexts, ", ", [](auto* text, auto& c) {
          text->append(c.first);
        })));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(options.addresses, ParseAddresses(found->second.address));
  const Context& chosen = found->second;
  CHAINFLEET_RETURN_IF_ERROR(TakeTokenOfCommand("token_command", chosen.token_command, &options));
  if (options.token.Current()->empty() && !chosen.token_file.empty()) {
    const auto read = [path = chosen.token_file] { return TokenInFile(path); };
    CHAINFLEET_ASSIGN_OR_RETURN(options.token, Reread<std::string>::Open("token_file", read));
  }
  if (!options.tls.any()) {
    options.tls = {FromHome(chosen.cert_file), FromHome(chosen.key_file), AuthoritiesFile(FromHome(chosen.ca_file))};
    CHAINFLEET_RETURN_IF_ERROR(CheckTlsFiles(options.tls));
  }
  return options;
}

}  // namespace chainfleet
