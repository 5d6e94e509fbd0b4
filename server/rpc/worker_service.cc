#include "server/rpc/worker_service.h"

#include "absl/strings/str_cat.h"
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

}  // namespace

grpc::ServerUnaryReactor* WorkerService::Synchronize(Context* context, const v1::SynchronizeRequest* request,
                                                     v1::SynchronizeReply* response) {
  return ServeUnary({*context, *parts_.clock}, response, [&](auto answer) {
    if (const absl::Status status = parts_.auth->Check(*context); !status.ok()) return answer->Fail(status);
    if (const absl::Status claims = CheckClaims(*request); !claims.ok()) return answer->Fail(claims);
    const absl::StatusOr<SynchronizeRequest> parsed = FromProto(*request);
    if (!parsed.ok()) return answer->Fail(parsed.status());
    parts_.dispatcher->Synchronize(*parsed, [answer](absl::StatusOr<SynchronizeReply> reply) {
      answer->Answer(reply, [](const SynchronizeReply& value) { return ToProto(value); });
    });
  });
}

grpc::ServerUnaryReactor* WorkerService::CommitProgress(Context* context, const v1::CommitProgressRequest* request,
                                                        v1::CommitProgressReply* response) {
  return ServeUnary({*context, *parts_.clock}, response, [&](auto answer) {
    if (const absl::Status status = parts_.auth->Check(*context); !status.ok()) return answer->Fail(status);
    if (const absl::Status claims = CheckClaims(*request); !claims.ok()) return answer->Fail(claims);
    absl::StatusOr<ProgressCommit> parsed = FromProto(*request);
    if (!parsed.ok()) return answer->Fail(parsed.status());
    const auto commit = std::make_shared<const ProgressCommit>(*std::move(parsed));
    const auto make = [answer, commit, dispatcher = parts_.dispatcher, traces = parts_.traces, clock = parts_.clock,
                       expected = parts_.traces->Expect(commit->chain.job)] {
      dispatcher->CommitProgress(*commit, [answer, commit, traces, expected, clock](absl::StatusOr<CommitReply> reply) {
        if (reply.ok() && !reply->replayed) {
          traces->Add(commit->chain, commit->trace, commit->ends_as, clock->Monotonic());
        }
        answer->Answer(reply, &ToReply);
      });
    };
    const ChainObjects objects(parts_.state, parts_.blobs, parts_.writer, *parts_.dispatcher);
    if (!objects.MustLookFor(*commit)) return make();
    const auto check = [answer, commit, objects, make] {
      const absl::Status status = objects.CheckPresent(*commit);
      return status.ok() ? make() : answer->Fail(status);
    };
    const absl::Status taken = parts_.object_checks->Schedule([answer] { return answer->waits(); }, check);
    if (!taken.ok()) answer->Fail(Annotate(taken, absl::StrCat("chain ", ToString(commit->chain))));
  });
}

grpc::ServerReadReactor<v1::PutBlobRequest>* WorkerService::PutBlob(Context* context, v1::PutBlobReply*) {
  return new BlobUploadCall(parts_, parts_.auth->Check(*context));
}

grpc::ServerUnaryReactor* WorkerService::SignUpload(Context* context, const v1::SignUploadRequest* request,
                                                    v1::SignUploadReply* response) {
  return ServeUnary({*context, *parts_.clock}, response, [&](auto answer) {
    if (const absl::Status status = parts_.auth->Check(*context); !status.ok()) return answer->Fail(status);
    const auto session = SessionOf(parts_, *request);
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
  const auto refuse = [](const absl::Status& status) {
    return ServeStream<v1::Chunk>([&](const auto& feed) { feed->End(status); });
  };
  if (const absl::Status status = parts_.auth->Check(*context); !status.ok()) return refuse(status);
  if (!IsObjectName(request->blob().name()))
    return refuse(absl::NotFoundError(absl::StrCat("no object ", request->blob().name())));
  const auto session = SessionOf(parts_, *request);
  if (!session.ok()) return refuse(session.status());
  const std::string& object = request->blob().name();
  if (*session && !Sessions(*parts_.dispatcher).NeedsObject(**session, object) &&
      !shards_->NeedsObject(**session, object)) {
    return refuse(WithReason(absl::UnavailableError(absl::StrCat("object ", object, ": worker ", (*session)->worker,
                                                                 " has no lease and no shard that needs it")),
                             "NOT_HELD"));
  }
  return StreamBlob(parts_.blobs, parts_.executor, request->blob().name());
}

grpc::ServerBidiReactor<v1::ShardUpdate, v1::ShardOrder>* WorkerService::ServeShards(Context* context) {
  const auto admit = [this](const WorkerIdentity& session) {
    if (!parts_.auth->wants_tokens() || Sessions(*parts_.dispatcher).IsPresent(session)) return absl::OkStatus();
    return WithReason(absl::UnavailableError(absl::StrCat("worker ", session.worker,
                                                          " has not called Synchronize in this incarnation yet")),
                      "NOT_HELD");
  };
  return shards_->Open(parts_.auth->Check(*context), admit);
}

}  // namespace chainfleet
