// The index of the models that a caller may ask.
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "server/rpc/inference_service.h"
#include "server/rpc/unary_call.h"

namespace chainfleet {
namespace {

// Why predictions of the job are refused; "" if they are not.
std::string WhyUnavailable(const ListedJob& job) {
  if (job.intent >= JobIntent::kCancel) return "the job was cancelled or is being deleted";
  if (job.plan->spec.kind == JobKind::kSbc) return "the job calibrates a sampler (kind: sbc) and predicts nothing";
  return job.has_usable_draws ? "" : "no draw is committed, or only by chains that have failed";
}

void Add(const std::string& name, int64_t version, const std::string& why_not, bool only_ready,
         inference::RepositoryIndexResponse* index) {
  if (only_ready && !why_not.empty()) return;
  auto* const model = index->add_models();
  model->set_name(name);
  if (version > 0) model->set_version(absl::StrCat(version));
  model->set_state(why_not.empty() ? "READY" : "UNAVAILABLE");
  model->set_reason(why_not);
}

// Calls `take` with each item of all pages that `list(page_token)` returns.
template <typename List, typename Take>
absl::Status ForAll(List list, Take take) {
  std::string token;
  do {
    auto page = list(token);
    CHAINFLEET_RETURN_IF_ERROR(page.status());
    for (const auto& item : page->items) take(item);
    token = page->next_page_token;
  } while (!token.empty());
  return absl::OkStatus();
}

absl::StatusOr<inference::RepositoryIndexResponse> IndexOf(const ServiceParts& parts, const std::string& tenant,
                                                           bool only_ready) {
  inference::RepositoryIndexResponse index;
  std::map<std::string, std::string> why_not;  // by job
  CHAINFLEET_RETURN_IF_ERROR(ForAll(
      [&](const std::string& token) {
        return parts.dispatcher->ListJobs({tenant, std::nullopt}, limits::kMaxPageSize, token);
      },
      [&](const ListedJob& job) {
        if (!job.plan->spec.model.has_data() || !job.plan->dataset) return;
        why_not[job.id] = WhyUnavailable(job);
        Add(job.id, job.newest_version, why_not[job.id], only_ready, &index);
      }));
  CHAINFLEET_RETURN_IF_ERROR(
      ForAll([&](const std::string& token) { return parts.versions->ListAliases(tenant, limits::kMaxPageSize, token); },
             [&](const Alias& alias) {
               const auto job = why_not.find(alias.job);
               if (job != why_not.end()) Add(alias.name, alias.number, job->second, only_ready, &index);
             }));
  return index;
}

}  // namespace

InferenceService::Reactor* InferenceService::RepositoryIndex(Context* context,
                                                             const inference::RepositoryIndexRequest* request,
                                                             inference::RepositoryIndexResponse* response) {
  const absl::StatusOr<std::string> tenant = parts_.auth->TenantOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, tenant.status(), [&](auto answer) {
    if (!request->repository_name().empty()) {
      return answer->Fail(absl::NotFoundError(
          absl::StrCat("unknown repository '", request->repository_name(), "': the only one has no name")));
    }
    answer->Answer(IndexOf(parts_, *tenant, request->ready()));
  });
}

}  // namespace chainfleet
