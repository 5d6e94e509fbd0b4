#include <iostream>

#include "absl/strings/str_cat.h"
#include "client/cli/verbs/verbs.h"

namespace chainfleet {
namespace {

// Adds one case per verb: its path of words, then the words that may follow.
void AddCases(const CLI::App& app, const std::string& path, std::string* cases) {
  std::string words;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    absl::StrAppend(&words, verb->get_name(), " ");
    AddCases(*verb, path.empty() ? verb->get_name() : absl::StrCat(path, " ", verb->get_name()), cases);
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) absl::StrAppend(&words, "--", name, " ");
  }
  absl::StrAppend(cases, "    \"", path, "\") words=\"", words, "\" ;;\n");
}

}  // namespace

void AddCompletion(CLI::App* program, Invocation* run) {
  CLI::App* verb = AddVerb(
      program, run, "completion", "Print the completion script of a shell", "  source <(chainfleet completion bash)",
      [=] {
        std::string cases;
        AddCases(*program, "", &cases);
        // The verb consists of the words before the cursor that are not options. Otherwise complete file names.
        std::cout
            << "_chainfleet() {\n"
               "  local verb=\"${COMP_WORDS[*]:1:2}\" words= current=${COMP_WORDS[COMP_CWORD]}\n"
               "  [ \"$COMP_CWORD\" -gt 2 ] || verb=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\"\n"
               "  case $verb in get\\ *|delete\\ *|dataset\\ *|model\\ *|alias\\ *) ;; *) verb=${verb%% *} ;; esac\n"
               "  case \"$verb\" in\n"
            << cases
            << "  esac\n"
               "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
               "}\n"
               "complete -o default -F _chainfleet chainfleet\n";
        return absl::OkStatus();
      });
  verb->add_option("SHELL", "bash")->required()->check(CLI::IsMember({"bash"}));
}

}  // namespace chainfleet
