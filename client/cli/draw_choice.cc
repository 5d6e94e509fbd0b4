#include "client/cli/draw_choice.h"

#include "client/cli/invocation.h"

namespace chainfleet {

void AddDrawChoice(CLI::App* verb, DrawChoice* choice) {
  verb->add_option("--kinds", choice->kinds, "theta, theta_a or both with a comma; default: all that the job keeps")
      ->delimiter(',')
      ->check(CLI::IsMember({"theta", "theta_a"}))
      ->option_text("KINDS");
  verb->add_option("--chains", choice->chains, "Only these chains, by index with commas")
      ->delimiter(',')
      ->check(CountAtLeast(0))
      ->option_text("CHAINS");
  verb->add_option("--members", choice->members, "Only the newest K draws of each chain")
      ->check(CountAtLeast(1))
      ->option_text("K");
  verb->add_option("--every", choice->every, "Only every K-th of the selected draws, counted back from the newest")
      ->check(CountAtLeast(1))
      ->option_text("K");
  verb->add_option("--max-draws", choice->max_draws,
                   "At most the newest N of the selected draws, evenly over the chains")
      ->check(CountAtLeast(1))
      ->option_text("N");
  verb->add_option("--version", choice->version, "Version of the job's draws; default: the newest")
      ->check(CountAtLeast(1))
      ->option_text("V");
  verb->add_flag("--include-failed", choice->include_failed, "Also use the draws of chains that FAILED or DIVERGED");
}

v1::DrawSelection SelectionOf(const DrawChoice& choice) {
  v1::DrawSelection selection;
  for (const std::string& kind : choice.kinds) selection.add_kinds(kind == "theta" ? v1::THETA : v1::THETA_A);
  selection.mutable_chains()->Add(choice.chains.begin(), choice.chains.end());
  selection.set_members(choice.members);
  selection.set_every(choice.every);
  selection.set_max_draws(choice.max_draws);
  selection.set_version(choice.version);
  selection.set_include_failed(choice.include_failed);
  return selection;
}

}  // namespace chainfleet
