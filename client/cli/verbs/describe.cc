#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/verbs/named_content.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/job_view.h"
#include "client/cli/views/resource_view.h"
#include "core/domain/no_such.h"

namespace chainfleet {
namespace {

absl::Status PrintJob(Invocation* run, const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job found, client.GetJob(job));
  CHAINFLEET_ASSIGN_OR_RETURN(const auto versions, client.ListSnapshots(found.id()));
  PrintOne(std::cout, run->format, found, found.id(),
           [&] { return Painted(*run, DescribeJob(found, run->clock.Wall(), static_cast<int64_t>(versions.size()))); });
  return absl::OkStatus();
}

// Describes the item of this name among those that `list` returns.
template <typename Item>
absl::Status DescribeNamed(Invocation* run, const std::string& kind,
                           absl::StatusOr<std::vector<Item>> (Client::*list)(), const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<Item> items, (client.*list)());
  const auto found = std::ranges::find_if(items, [&](const Item& item) { return NameOf(item) == name; });
  if (found == items.end()) return NoSuch(kind, name);
  PrintOne(std::cout, run->format, *found, name, [&] { return ToYaml(*found); });
  return absl::OkStatus();
}

absl::Status DescribeEvaluation(Invocation* run, const std::string& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::EvaluationOperation found, client.GetEvaluation(id));
  PrintOne(std::cout, run->format, found, id, [&] { return ToYaml(found); });
  return absl::OkStatus();
}

absl::Status Describe(Invocation* run, const std::vector<std::string>& words) {
  if (words.size() == 1) return PrintJob(run, words[0]);
  const auto about = [&](const std::string& plural) { return words[0] == plural || words[0] == Singular(plural); };
  if (about("jobs")) return PrintJob(run, words[1]);
  if (about("datasets")) return DescribeNamed(run, "dataset", &Client::ListDatasets, words[1]);
  if (about("models")) return DescribeNamed(run, "model", &Client::ListModels, words[1]);
  if (about("aliases")) return DescribeNamed(run, "alias", &Client::ListAliases, words[1]);
  if (about("workers")) return DescribeNamed(run, "worker", &Client::ListWorkers, words[1]);
  if (about("tokens")) return DescribeNamed(run, "token", &Client::ListTokens, words[1]);
  if (about("evaluations")) return DescribeEvaluation(run, words[1]);
  return WithReason(absl::InvalidArgumentError(absl::StrCat(
                        "\"", words[0], "\" is not one of job, dataset, model, alias, worker, evaluation, token")),
                    kUsageReason);
}

}  // namespace

void AddDescribe(CLI::App* program, Invocation* run) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = AddVerb(program, run, "describe",
                           "Show all about a job (state, posterior, job file, chains) or about another resource",
                           "  chainfleet describe @latest\n"
                           "  chainfleet describe fashion-emcmc -o yaml\n"
                           "  chainfleet describe dataset fashion-mnist",
                           [=] { return Describe(run, *words); });
  verb->add_option("JOB", *words,
                   "Job id, name (the newest job of that name), or @latest; or KIND NAME, where KIND is job, dataset, "
                   "model, alias, worker, evaluation or token")
      ->required()
      ->expected(1, 2)
      ->type_name("");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet
