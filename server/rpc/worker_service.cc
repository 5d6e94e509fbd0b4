#include "server/rpc/worker_service.h"

#include "absl/strings/str_cat.h"
#include "core/domain/tenant.h"
#include "core/store/draw_codec/object_names.h"
#include "core/wire/types_wire.h"
#include "core/wire/worker_wire.h"
#include "server/control/chain_objects.h"
#include "server/rpc/blob_stream.h"
#include "server/rpc/blob_upload_call.h"
#include "server/rpc/message_stream.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/worker_claims.h"

namespace chainfleet {
namespace {

v1::CommitProgressReply ToReply(const CommitReply& reply) {
  v1::CommitProgressReply rendered;
  rendered.set_replayed(reply.replayed);
  return rendered;
}

// Returns the caller, who may speak as the worker that the request names.
template <typename Request>
absl::StatusOr<Principal> SpeakerOf(const ServiceParts& parts, const grpc::CallbackServerContext& context,
                                    const Request& request) {
  CHAINFLEET_ASSIGN_OR_RETURN(Principal caller, parts.auth->CallerOf(context));
  CHAINFLEET_RETURN_IF_ERROR(CheckClaims(request));
  CHAINFLEET_RETURN_IF_ERROR(CheckSpeaker(caller, {request.worker(), request.incarnation()}));
  return caller;
}

}  // namespace

WorkerService::WorkerService(ServiceParts parts, ShardStreams* shards) : parts_(std::move(parts)), shards_(shards) {
  TakeUpload<v1::PutBlobReply>("/chainfleet.v1.WorkerService/PutBlob", [this](Context* context, v1::PutBlobReply*) {
    return new BlobUploadCall(parts_, parts_.auth->CallerOf(*context));
  });
  TakeStream<v1::ShardOrder>("/chainfleet.v1.WorkerService/ServeShards",
                             [this](Context* context) { return OpenShards(context); });
}

grpc::ServerUnaryReactor* WorkerService::Join(Context* context, const v1::JoinRequest* request,
                                              v1::JoinReply* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    const absl::Status speaker = CheckSpeaker(*caller, {request->worker(), request->incarnation()});
    if (!speaker.ok()) return answer->Fail(speaker);
    const std::string tenant = parts_.auth->wants_tokens() ? caller->tenant : kEveryTenant;
    const auto reply = parts_.admission->Admit(*request, tenant, caller->id);
    if (!reply.ok() || caller->worker) return answer->Answer(reply);
    parts_.tokens->Use(
        caller->id, request->worker() + "/" + request->incarnation(),
        [answer, reply](const absl::StatusOr<bool>& used) { answer->Answer(used, [&](bool) { return *reply; }); });
  });
}

grpc::ServerUnaryReactor* WorkerService::Synchronize(Context* context, const v1::SynchronizeRequest* request,
                                                     v1::SynchronizeReply* response) {
  const absl::StatusOr<Principal> caller = SpeakerOf(parts_, *context, *request);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    absl::StatusOr<SynchronizeRequest> parsed = FromProto(*request);
    if (!parsed.ok()) return answer->Fail(parsed.status());
    parsed->admission = AdmissionOf(*caller);
    parts_.dispatcher->Synchronize(*parsed, [answer](absl::StatusOr<SynchronizeReply> reply) {
      answer->Answer(reply, [](const SynchronizeReply& value) { return ToProto(value); });
    });
  });
}

grpc::ServerUnaryReactor* WorkerService::CommitProgress(Context* context, const v1::CommitProgressRequest* request,
                                                        v1::CommitProgressReply* response) {
  const absl::StatusOr<Principal> caller = SpeakerOf(parts_, *context, *request);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    absl::StatusOr<ProgressCommit> parsed = FromProto(*request);
    if (!parsed.ok()) return answer->Fail(parsed.status());
    const absl::Status taken =
        parts_.admission->TakeSignatures(caller->worker.get(), parts_.state->incarnation(), &*parsed);
    if (!taken.ok()) return answer->Fail(taken);
    const auto commit = std::make_shared<ProgressCommit>(*std::move(parsed));
    const auto make = [answer, commit, dispatcher = parts_.dispatcher, traces = parts_.traces, clock = parts_.clock,
                       expected = parts_.traces->Expect(commit->chain.job), admission = AdmissionOf(*caller)] {
      const auto made = [answer, commit, traces, expected, clock](const absl::StatusOr<CommitReply>& reply) {
        if (reply.ok() && !reply->replayed) {
          traces->Add(commit->chain, commit->trace, commit->ends_as, clock->Monotonic());
        }
        answer->Answer(reply, &ToReply);
      };
      dispatcher->CommitProgress(*commit, made, admission);
    };
    const ChainObjects objects(parts_.state, parts_.blobs, parts_.writer, *parts_.dispatcher);
    if (!objects.MustPrepare(*commit)) return make();
    const auto prepare = [answer, commit, objects, make] {
      const absl::Status status = objects.Prepare(commit.get());
      return status.ok() ? make() : answer->Fail(status);
    };
    const absl::Status queued = parts_.object_checks->Schedule([answer] { return answer->waits(); }, prepare);
    if (!queued.ok()) answer->Fail(Annotate(queued, absl::StrCat("chain ", ToString(commit->chain))));
  });
}

grpc::ServerUnaryReactor* WorkerService::SignUpload(Context* context, const v1::SignUploadRequest* request,
                                                    v1::SignUploadReply* response) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  return ServeUnary({*context, *parts_.clock}, response, caller.status(), [&](auto answer) {
    const auto session = SessionOf(parts_, *caller, *request);
    if (!session.ok()) return answer->Fail(session.status());
    if (parts_.uploads == nullptr) return answer->Succeed({});
    const absl::StatusOr<SignedUpload> upload = parts_.uploads->SignUpload(
        FromProto(request->chain()), request->lease_epoch(), FromProto(request->blob()), *session);
    if (!upload.ok()) parts_.metrics->CountRefusedUpload(upload.status());
    answer->Answer(upload, [](const SignedUpload& value) {
      v1::SignUploadReply rendered;
      rendered.set_url(value.url);
      rendered.mutable_headers()->insert(value.headers.begin(), value.headers.end());
      return rendered;
    });
  });
}

grpc::ServerWriteReactor<v1::Chunk>* WorkerService::GetBlob(Context* context, const v1::GetBlobRequest* request) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  if (!caller.ok()) return RefuseStream<v1::Chunk>(caller.status());
  if (!IsObjectName(request->blob().name()))
    return RefuseStream<v1::Chunk>(absl::NotFoundError(absl::StrCat("no object ", request->blob().name())));
  const auto session = SessionOf(parts_, *caller, *request);
  if (!session.ok()) return RefuseStream<v1::Chunk>(session.status());
  const std::string& object = request->blob().name();
  if (*session && !Sessions(*parts_.dispatcher).NeedsObject(**session, object) &&
      !shards_->NeedsObject(**session, object)) {
    return RefuseStream<v1::Chunk>(
        WithReason(absl::UnavailableError(absl::StrCat("object ", object, ": worker ", (*session)->worker,
                                                       " has no lease and no shard that needs it")),
                   "NOT_HELD"));
  }
  return StreamBlob(parts_.blobs, parts_.executor, request->blob().name(),
                    [auth = parts_.auth, caller = *caller] { return auth->CheckStillKnown(caller); });
}

ShardStreams::Reactor* WorkerService::OpenShards(Context* context) {
  const absl::StatusOr<Principal> caller = parts_.auth->CallerOf(*context);
  const auto admit = [this, caller](const WorkerIdentity& session) -> absl::StatusOr<Admission> {
    CHAINFLEET_RETURN_IF_ERROR(CheckSpeaker(*caller, session));
    if (!parts_.auth->wants_tokens() || Sessions(*parts_.dispatcher).IsPresent(session)) return AdmissionOf(*caller);
    return WithReason(absl::UnavailableError(absl::StrCat("worker ", session.worker,
                                                          " has not called Synchronize in this incarnation yet")),
                      "NOT_HELD");
  };
  const auto still = [auth = parts_.auth, caller] { return auth->CheckStillKnown(*caller); };
  return shards_->Open(caller.status(), admit, still);
}

}  // namespace chainfleet
