#include <iostream>

#include "absl/strings/str_cat.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/resource_view.h"

namespace chainfleet {
namespace {

absl::Status ShowCaller(Invocation* run) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::ServerInfo info, client.GetServerInfo());
  if (!info.has_caller()) {
    return absl::UnimplementedError(
        absl::StrCat("the server is of release ", info.version(), ", which does not tell callers who they are"));
  }
  const v1::Caller& caller = info.caller();
  PrintOne(std::cout, run->format, caller, caller.principal(),
           [&] { return absl::StrCat(CallerTable(caller).Render(), "\n", LimitTable(caller).Render()); });
  return absl::OkStatus();
}

}  // namespace

void AddWhoami(CLI::App* program, Invocation* run) {
  CLI::App* verb =
      AddVerb(program, run, "whoami", "Show who you are to the server, and the limits of your tenant with their usage",
              "  chainfleet whoami\n  chainfleet whoami -o jsonpath={.tenant}", [=] { return ShowCaller(run); });
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
