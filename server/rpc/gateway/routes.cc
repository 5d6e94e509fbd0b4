#include "server/rpc/gateway/routes.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/check.h"
#include "core/base/percent.h"

namespace chainfleet {
namespace {

// More special paths first.
constexpr Route kRoutes[] = {
    {"GET", "/v2", "inference.GRPCInferenceService.ServerMetadata", MakePlainTranslation},
    {"GET", "/v2/health/live", "inference.GRPCInferenceService.ServerLive", MakeReadyTranslation},
    {"GET", "/v2/health/ready", "inference.GRPCInferenceService.ServerReady", MakeReadyTranslation},
    {"POST", "/v2/repository/index", "inference.GRPCInferenceService.RepositoryIndex", MakeIndexTranslation},
    {"GET", "/v2/models/stats", "inference.GRPCInferenceService.ModelStatistics", MakePlainTranslation},
    {"GET", "/v2/models/{name}", "inference.GRPCInferenceService.ModelMetadata", MakePlainTranslation},
    {"GET", "/v2/models/{name}/ready", "inference.GRPCInferenceService.ModelReady", MakeReadyTranslation},
    {"GET", "/v2/models/{name}/config", "inference.GRPCInferenceService.ModelConfig", MakePlainTranslation},
    {"GET", "/v2/models/{name}/stats", "inference.GRPCInferenceService.ModelStatistics", MakePlainTranslation},
    {"POST", "/v2/models/{model_name}/infer", "inference.GRPCInferenceService.ModelInfer", MakeInferTranslation},
    {"GET", "/v2/models/{name}/versions/{version}", "inference.GRPCInferenceService.ModelMetadata",
     MakePlainTranslation},
    {"GET", "/v2/models/{name}/versions/{version}/ready", "inference.GRPCInferenceService.ModelReady",
     MakeReadyTranslation},
    {"GET", "/v2/models/{name}/versions/{version}/config", "inference.GRPCInferenceService.ModelConfig",
     MakePlainTranslation},
    {"GET", "/v2/models/{name}/versions/{version}/stats", "inference.GRPCInferenceService.ModelStatistics",
     MakePlainTranslation},
    {"POST", "/v2/models/{model_name}/versions/{model_version}/infer", "inference.GRPCInferenceService.ModelInfer",
     MakeInferTranslation},
    {"GET", "/v1/tokens", "chainfleet.v1.AccessService.ListTokens", MakeMessageTranslation},
    {"POST", "/v1/tokens", "chainfleet.v1.AccessService.CreateToken", MakeMessageTranslation},
    {"DELETE", "/v1/tokens/{id}", "chainfleet.v1.AccessService.RevokeToken", MakeMessageTranslation},
    {"GET", "/v1/audit", "chainfleet.v1.AccessService.ListAudit", MakeMessageTranslation},
    {"GET", "/v1/server", "chainfleet.v1.JobService.GetServerInfo", MakeMessageTranslation},
    {"GET", "/v1/jobs", "chainfleet.v1.JobService.ListJobs", MakeMessageTranslation},
    {"POST", "/v1/jobs", "chainfleet.v1.JobService.CreateJob", MakeMessageTranslation},
    {"GET", "/v1/jobs/{name}", "chainfleet.v1.JobService.GetJob", MakeMessageTranslation},
    {"GET", "/v1/jobs/{name}/watch", "chainfleet.v1.JobService.WatchJob", MakeMessageTranslation},
    {"GET", "/v1/jobs/{job}/events", "chainfleet.v1.JobService.ListEvents", MakeMessageTranslation},
    {"POST", "/v1/jobs/{job}/evaluate", "chainfleet.v1.PredictService.Evaluate", MakeMessageTranslation},
    {"POST", "/v1/jobs/{name}/intent", "chainfleet.v1.JobService.SetIntent", MakeMessageTranslation},
    {"POST", "/v1/jobs/{name}/scale", "chainfleet.v1.JobService.ScaleJob", MakeMessageTranslation},
    {"GET", "/v1/jobs/{job}/segments", "chainfleet.v1.JobService.ListSegments", MakeMessageTranslation},
    {"GET", "/v1/jobs/{job}/segments/{object}", "chainfleet.v1.JobService.ReadSegment", MakeBytesTranslation},
    {"GET", "/v1/jobs/{job}/traces", "chainfleet.v1.JobService.GetTraces", MakeMessageTranslation},
    {"GET", "/v1/jobs/{job}/snapshots", "chainfleet.v1.JobService.ListSnapshots", MakeMessageTranslation},
    {"POST", "/v1/jobs/{job}/snapshots", "chainfleet.v1.JobService.CreateSnapshot", MakeMessageTranslation},
    {"DELETE", "/v1/jobs/{job}/snapshots/{version}", "chainfleet.v1.JobService.DeleteSnapshot", MakeMessageTranslation},
    {"POST", "/v1/jobs/{job}/predict", "chainfleet.v1.PredictService.Predict", MakeMessageTranslation},
    {"GET", "/v1/aliases", "chainfleet.v1.JobService.ListAliases", MakeMessageTranslation},
    {"PUT", "/v1/aliases/{name}", "chainfleet.v1.JobService.SetAlias", MakeMessageTranslation},
    {"DELETE", "/v1/aliases/{name}", "chainfleet.v1.JobService.DeleteAlias", MakeMessageTranslation},
    {"GET", "/v1/datasets", "chainfleet.v1.JobService.ListDatasets", MakeMessageTranslation},
    {"PUT", "/v1/datasets/{name}", "chainfleet.v1.JobService.PutDataset", MakeMessageTranslation},
    {"DELETE", "/v1/datasets/{name}", "chainfleet.v1.JobService.DeleteDataset", MakeMessageTranslation},
    {"POST", "/v1/datasets/{name}/share", "chainfleet.v1.JobService.ShareDataset", MakeMessageTranslation},
    {"POST", "/v1/datasets/{dataset}/rows", "chainfleet.v1.JobService.ReadRows", MakeMessageTranslation},
    {"GET", "/v1/models", "chainfleet.v1.JobService.ListModels", MakeMessageTranslation},
    {"PUT", "/v1/models/{name}", "chainfleet.v1.JobService.PutModel", MakeMessageTranslation},
    {"DELETE", "/v1/models/{name}", "chainfleet.v1.JobService.DeleteModel", MakeMessageTranslation},
    {"POST", "/v1/models/{name}/share", "chainfleet.v1.JobService.ShareModel", MakeMessageTranslation},
    {"GET", "/v1/workers", "chainfleet.v1.JobService.ListWorkers", MakeMessageTranslation},
    {"POST", "/v1/workers/{worker}/drain", "chainfleet.v1.JobService.DrainWorker", MakeMessageTranslation},
    {"GET", "/v1/evaluations", "chainfleet.v1.PredictService.ListEvaluations", MakeMessageTranslation},
    {"POST", "/v1/evaluations", "chainfleet.v1.PredictService.StartEvaluation", MakeMessageTranslation},
    {"GET", "/v1/evaluations/{id}", "chainfleet.v1.PredictService.GetEvaluation", MakeMessageTranslation},
    {"POST", "/v1/evaluations/{id}/cancel", "chainfleet.v1.PredictService.CancelEvaluation", MakeMessageTranslation},
};

// The segments of each route's path.
const std::vector<std::vector<std::string>>& Patterns() {
  static const auto* const patterns = [] {
    auto* const split = new std::vector<std::vector<std::string>>;
    for (const Route& route : kRoutes) split->push_back(absl::StrSplit(route.path, '/'));
    return split;
  }();
  return *patterns;
}

// The fields of `path` if the pattern `wanted` fits it.
std::optional<std::vector<std::pair<std::string, std::string>>> Fit(const std::vector<std::string>& wanted,
                                                                    const std::vector<std::string>& path) {
  if (wanted.size() != path.size()) return std::nullopt;
  std::vector<std::pair<std::string, std::string>> fields;
  for (size_t i = 0; i < path.size(); ++i) {
    if (!wanted[i].starts_with('{')) {
      if (wanted[i] != path[i]) return std::nullopt;
    } else {
      if (path[i].empty()) return std::nullopt;
      // As Triton: a version that is no number is an unknown path.
      const bool is_number = std::ranges::all_of(path[i], [](unsigned char c) { return absl::ascii_isdigit(c); });
      if (wanted[1] == "v2" && wanted[i].ends_with("version}") && !is_number) return std::nullopt;
      fields.emplace_back(wanted[i].substr(1, wanted[i].size() - 2), path[i]);
    }
  }
  return fields;
}

}  // namespace

bool HasBody(const Route& route) { return *route.verb == 'P'; }

std::span<const Route> Routes() { return kRoutes; }

RouteMatch FindRoute(const std::string& verb, const std::string& path) {
  RouteMatch match;
  std::vector<std::string> segments = absl::StrSplit(path, '/');
  for (std::string& segment : segments) {
    const std::optional<std::string> decoded = PercentDecoded(segment);
    if (!decoded) return match;
    segment = *decoded;
  }
  for (size_t i = 0; i < std::size(kRoutes); ++i) {
    const Route& route = kRoutes[i];
    auto fields = Fit(Patterns()[i], segments);
    if (!fields) continue;
    absl::StrAppend(&match.verbs, match.verbs.empty() ? "" : ", ", route.verb);
    if (verb != route.verb) continue;
    match.route = &route;
    match.fields = *std::move(fields);
    return match;
  }
  return match;
}

const google::protobuf::MethodDescriptor& MethodOf(const Route& route) {
  const auto* const method = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(route.method);
  CHAINFLEET_CHECK(method != nullptr);
  return *method;
}

const google::protobuf::Descriptor& RequestOf(const Route& route) {
  const google::protobuf::MethodDescriptor& method = MethodOf(route);
  if (!method.client_streaming()) return *method.input_type();
  return *method.input_type()->FindFieldByName("header")->message_type();
}

}  // namespace chainfleet
