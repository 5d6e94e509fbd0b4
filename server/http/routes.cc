#include "server/http/routes.h"

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
};

// The fields of `path` if `pattern` fits it.
std::optional<std::vector<std::pair<std::string, std::string>>> Fit(const std::string& pattern,
                                                                    const std::vector<std::string>& path) {
  const std::vector<std::string> wanted = absl::StrSplit(pattern, '/');
  if (wanted.size() != path.size()) return std::nullopt;
  std::vector<std::pair<std::string, std::string>> fields;
  for (size_t i = 0; i < path.size(); ++i) {
    if (!wanted[i].starts_with('{')) {
      if (wanted[i] != path[i]) return std::nullopt;
    } else {
      if (path[i].empty()) return std::nullopt;
      fields.emplace_back(wanted[i].substr(1, wanted[i].size() - 2), path[i]);
    }
  }
  return fields;
}

}  // namespace

std::span<const Route> Routes() { return kRoutes; }

RouteMatch FindRoute(const std::string& verb, const std::string& path) {
  RouteMatch match;
  std::vector<std::string> segments = absl::StrSplit(path, '/');
  if (segments.size() > 2 && segments.back().empty()) segments.pop_back();  // "/v2/" is "/v2"
  for (std::string& segment : segments) {
    const std::optional<std::string> decoded = PercentDecoded(segment);
    if (!decoded) return match;
    segment = *decoded;
  }
  for (const Route& route : kRoutes) {
    auto fields = Fit(route.path, segments);
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

}  // namespace chainfleet
