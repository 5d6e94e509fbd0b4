#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/resource_view.h"

namespace chainfleet {
namespace {

// A shell waits for the names while the user does.
constexpr absl::Duration kLookUp = absl::Seconds(1);

// Each script asks this program for the words that may follow; where there are none, the shell completes file names.
// Bash takes @ and : for ends of words. Its script therefore splits the line at spaces, and returns words without the
// part that bash keeps on the line: all up to a colon, and all before an @.
constexpr char kBash[] = R"(_chainfleet() {
  local line="${COMP_LINE:0:COMP_POINT}" IFS=$' \t\n'
  local word="${line##*[[:space:]]}" breaks="${COMP_WORDBREAKS//[^@:]/}" names rest
  local -a words
  read -ra words <<< "${line%"$word"}"
  names=$(chainfleet __complete -- "${words[@]:1}" 2>/dev/null)
  COMPREPLY=($(compgen -W "$names" -- "$word"))
  rest="$word"
  [[ $breaks != *:* ]] || rest="${rest##*:}"
  [[ $breaks != *@* || $rest != *@* ]] || rest="@${rest##*@}"
  COMPREPLY=("${COMPREPLY[@]#"${word%"$rest"}"}")
}
complete -o default -F _chainfleet chainfleet
)";
// clang-format off: it takes the script for C++.
constexpr char kZsh[] = R"zsh(#compdef chainfleet
_chainfleet() {
  local -a found
  found=(${(f)"$(chainfleet __complete -- ${words[2,CURRENT-1]} 2>/dev/null)"})
  compadd -a found
  [[ ${words[CURRENT]} == -* ]] || _files
}
compdef _chainfleet chainfleet
)zsh";
// clang-format on
constexpr char kFish[] =
    "complete -c chainfleet -a '(set -l w (commandline -opc); chainfleet __complete -- $w[2..] 2>/dev/null)'\n";

template <typename Item>
std::vector<std::string> NamesOf(const absl::StatusOr<std::vector<Item>>& items) {
  std::vector<std::string> names;
  if (!items.ok()) return names;
  for (const Item& item : *items) names.push_back(NameOf(item));
  return names;
}

// The names on the server that may follow `words`: the verbs of the line, and its last word.
std::vector<std::string> NamesFor(Invocation* run, const CLI::App& verb, const std::string& words) {
  const auto takes = [&](const std::string& argument) { return verb.get_option_no_throw(argument) != nullptr; };
  const auto about = [&](const char* kind) { return absl::StrContains(words, kind); };
  if (!takes("JOB") && !takes("WORKER") && !takes("NAME")) return {};
  absl::StatusOr<Client> client = run->ConnectTo(run->address, kLookUp);
  if (!client.ok()) return {};
  if (about("worker") || about("drain")) return NamesOf(client->ListWorkers());
  if (about("dataset") || about("--ood") || about("--calibrate")) return NamesOf(client->ListDatasets());
  if (about("model")) return NamesOf(client->ListModels());
  if (about("token")) return NamesOf(client->ListTokens());
  if (about("evaluation")) return NamesOf(client->ListEvaluations(""));
  std::vector<std::string> names = about("alias") ? NamesOf(client->ListAliases()) : std::vector<std::string>();
  if (!takes("JOB") || about("describe alias")) return names;
  for (std::string& job : NamesOf(client->ListJobs(""))) names.push_back(std::move(job));
  names.emplace_back("@latest");
  return names;
}

// Takes the server from --address and --context of an unfinished command line.
void TakeServer(const std::vector<std::string>& words, Invocation* run) {
  for (const auto& [flag, value] : {std::pair("--address", &run->address), std::pair("--context", &run->context)}) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == flag && i + 1 < words.size()) *value = words[i + 1];
      if (words[i].starts_with(absl::StrCat(flag, "="))) *value = words[i].substr(words[i].find('=') + 1);
    }
  }
}

// Prints the words that may follow those of an unfinished command line.
absl::Status Complete(const CLI::App& program, Invocation* run, const std::vector<std::string>& words) {
  TakeServer(words, run);
  const CLI::App* verb = &program;
  std::string path;
  for (const std::string& word : words) {
    const auto named = verb->get_subcommands([&](const CLI::App* app) { return app->check_name(word); });
    if (named.empty()) continue;
    verb = named[0];
    absl::StrAppend(&path, " ", word);
  }
  std::vector<std::string> found = NamesFor(run, *verb, absl::StrCat(path, " ", words.empty() ? "" : words.back()));
  for (const CLI::App* below : verb->get_subcommands([](const CLI::App* app) { return !app->get_group().empty(); })) {
    found.push_back(below->get_name());
  }
  for (const CLI::Option* option : verb->get_options()) {
    for (const std::string& name : option->get_lnames()) found.push_back("--" + name);
  }
  for (const std::string& word : found) std::cout << word << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddCompletion(CLI::App* program, Invocation* run) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* verb = AddVerb(program, run, "completion", "Print the completion script of a shell",
                           "  source <(chainfleet completion bash)                # in ~/.bashrc\n"
                           "  source <(chainfleet completion zsh)                 # in ~/.zshrc, after compinit\n"
                           "  chainfleet completion fish | source                 # in ~/.config/fish/config.fish",
                           [=] {
                             std::cout << (*shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
                             return absl::OkStatus();
                           });
  verb->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* hidden = AddVerb(program, run, "__complete", "Print the words that may follow", "",
                             [=] { return Complete(*program, run, *words); });
  hidden->group("");
  hidden->add_option("WORDS", *words);
}

}  // namespace chainfleet
