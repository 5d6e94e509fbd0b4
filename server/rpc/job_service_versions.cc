// The methods of JobService for versions and aliases.
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/control/page_token.h"
#include "server/rpc/job_render.h"
#include "server/rpc/job_service.h"
#include "server/rpc/unary_call.h"

namespace chainfleet {
namespace {

absl::StatusOr<v1::ListSnapshotsResponse> ListPage(StateStore* store, const std::string& job,
                                                   const std::vector<Alias>& aliases, int32_t page_size,
                                                   const std::string& page_token) {
  const std::string arguments = "snapshots " + job;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string cursor, CursorOf(arguments, page_token));
  int64_t after = 0;
  if (!cursor.empty() && !absl::SimpleAtoi(cursor, &after)) after = 0;
  const int32_t limit = ClampPageSize(page_size);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<Version> versions, store->ListVersions(job, after, limit));
  v1::ListSnapshotsResponse list;
  for (const Version& version : versions) *list.add_snapshots() = RenderVersion(version, aliases);
  if (static_cast<int32_t>(versions.size()) == limit) {
    list.set_next_page_token(MakePageToken(arguments, absl::StrCat(versions.back().number)));
  }
  return list;
}

}  // namespace

grpc::ServerUnaryReactor* JobService::CreateSnapshot(Context* context, const v1::CreateSnapshotRequest* request,
                                                     v1::Snapshot* response) {
  const absl::StatusOr<std::string> job = ResolveJob(parts_, *context, request->job());
  return ServeUnary({*context, *parts_.clock}, response, job.status(), [&](auto answer) {
    parts_.versions->Create(*job, [answer, versions = parts_.versions](absl::StatusOr<Version> made) {
      answer->Answer(made,
                     [&](const Version& version) { return RenderVersion(version, versions->AliasesOf(version.job)); });
    });
  });
}

grpc::ServerUnaryReactor* JobService::ListSnapshots(Context* context, const v1::ListSnapshotsRequest* request,
                                                    v1::ListSnapshotsResponse* response) {
  const absl::StatusOr<std::string> job = ResolveJob(parts_, *context, request->job());
  return ServeUnary({*context, *parts_.clock}, response, job.status(), [&](auto answer) {
    parts_.executor->Schedule([answer, store = parts_.state, job = *job, aliases = parts_.versions->AliasesOf(*job),
                               size = request->page_size(), token = request->page_token()] {
      answer->Answer(ListPage(store, job, aliases, size, token));
    });
  });
}

grpc::ServerUnaryReactor* JobService::DeleteSnapshot(Context* context, const v1::DeleteSnapshotRequest* request,
                                                     v1::DeleteSnapshotResponse* response) {
  const absl::StatusOr<std::string> job = ResolveJob(parts_, *context, request->job());
  return ServeUnary({*context, *parts_.clock}, response, job.status(), [&](auto answer) {
    if (request->version() < 1) {
      return answer->Fail(InvalidFields({{"version", "must be the number of a version, from 1 on"}}));
    }
    parts_.versions->Delete(*job, request->version(),
                            [answer, statistics = parts_.statistics, job = *job,
                             version = request->version()](const absl::StatusOr<bool>& deleted) {
                              if (deleted.ok()) statistics->Forget(job, version);
                              answer->Answer(deleted, [](bool) { return v1::DeleteSnapshotResponse(); });
                            });
  });
}

grpc::ServerUnaryReactor* JobService::SetAlias(Context* context, const v1::SetAliasRequest* request,
                                               v1::Alias* response) {
  const absl::StatusOr<std::string> tenant = parts_.auth->TenantOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, tenant.status(), [&](auto answer) {
    const absl::StatusOr<std::string> job = parts_.dispatcher->ResolveJob(*tenant, request->job());
    if (!job.ok()) return answer->Fail(job.status());
    parts_.versions->SetAlias({*tenant, request->name(), *job, request->version()},
                              [answer](const absl::StatusOr<Alias>& alias) { answer->Answer(alias, RenderAlias); });
  });
}

grpc::ServerUnaryReactor* JobService::ListAliases(Context* context, const v1::ListAliasesRequest* request,
                                                  v1::ListAliasesResponse* response) {
  const absl::StatusOr<std::string> tenant = parts_.auth->TenantOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, tenant.status(), [&](auto answer) {
    answer->Answer(parts_.versions->ListAliases(*tenant, request->page_size(), request->page_token()),
                   [](const Page<Alias>& page) {
                     v1::ListAliasesResponse list;
                     for (const Alias& alias : page.items) *list.add_aliases() = RenderAlias(alias);
                     list.set_next_page_token(page.next_page_token);
                     return list;
                   });
  });
}

grpc::ServerUnaryReactor* JobService::DeleteAlias(Context* context, const v1::DeleteAliasRequest* request,
                                                  v1::DeleteAliasResponse* response) {
  const absl::StatusOr<std::string> tenant = parts_.auth->TenantOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, tenant.status(), [&](auto answer) {
    parts_.versions->DeleteAlias(*tenant, request->name(), [answer](const absl::StatusOr<bool>& deleted) {
      answer->Answer(deleted, [](bool) { return v1::DeleteAliasResponse(); });
    });
  });
}

}  // namespace chainfleet
