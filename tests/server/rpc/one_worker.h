// A worker's calls to a server, with their contents.
#pragma once

#include <string>
#include <utility>

#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"
#include "core/wire/types_wire.h"
#include "core/wire/worker_wire.h"
#include "tests/server/rpc/running_server.h"

namespace chainfleet {

// One worker and one chain that it leases.
class OneWorker : public RunningServer {
 protected:
  explicit OneWorker(GivenTokens tokens = {}) : RunningServer(std::move(tokens)) {}

  absl::StatusOr<SynchronizeReply> Synchronize(int32_t protocol_version = kProtocolVersion) {
    SynchronizeRequest request;
    request.protocol_version = protocol_version;
    request.worker = "w1";
    request.incarnation = incarnation_;
    request.seq = ++seq_;
    request.devices = {{"cpu", int64_t{1} << 30, 4}};
    const auto reply = Call(*workers_, &v1::WorkerService::Stub::Synchronize, ToProto(request));
    if (!reply.ok()) return reply.status();
    return FromProto(*reply);
  }
  // Returns the first grant of a new job.
  Grant Lease() {
    EXPECT_TRUE(CreateJob(GaussianJob("walk")).ok());
    return Granted([&] { return Synchronize(); });
  }
  // Returns the status of PutBlob for the bytes `sent` if the header announces `ref`.
  absl::Status Put(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref, const std::string& sent,
                   const v1::WorkerSession& session = {}) {
    grpc::ClientContext context;
    SetDeadline(&context);
    SendToken(&context);
    v1::PutBlobReply reply;
    const auto writer = workers_->PutBlob(&context, &reply);
    v1::PutBlobRequest message;
    *message.mutable_header()->mutable_chain() = ToProto(chain);
    message.mutable_header()->set_lease_epoch(lease_epoch);
    *message.mutable_header()->mutable_blob() = ToProto(ref);
    *message.mutable_header()->mutable_session() = session;
    bool going = writer->Write(message);
    for (size_t begin = 0; going && begin < sent.size(); begin += 1000) {
      message.set_data(sent.substr(begin, 1000));
      going = writer->Write(message);
    }
    writer->WritesDone();
    return FromGrpc(writer->Finish());
  }
  static BlobRef RefOf(const Grant& grant, const std::string& bytes) {
    const DigestHex digest = Sha256Hex(bytes);
    return {SegmentObjectName("store", grant.chain, grant.lease_epoch, digest), static_cast<int64_t>(bytes.size()),
            digest};
  }
  ProgressCommit CommitOf(const Grant& grant, const BlobRef& object) const {
    ProgressCommit commit;
    commit.author.worker = "w1";
    commit.incarnation = incarnation_;
    commit.author.host = "host";
    commit.author.device_kind = "cpu";
    commit.author.numerics_version = 1;
    commit.chain = grant.chain;
    commit.lease_epoch = grant.lease_epoch;
    commit.resume_point = {10, "state", std::nullopt, Sha256Hex("state")};
    commit.segment = Segment{.first_index = 0,
                             .steps = {10},
                             .weights = {1},
                             .kinds = {DrawKind::kTheta},
                             .object = object,
                             .digest = object.sha256,  // as RefOf names it
                             .parent_digest = grant.progress.last_digest};
    return commit;
  }
  absl::StatusOr<v1::CommitProgressReply> Commit(const ProgressCommit& commit) {
    return Call(*workers_, &v1::WorkerService::Stub::CommitProgress, ToProto(commit));
  }

  uint64_t seq_ = 0;
  std::string incarnation_ = "life";
};

}  // namespace chainfleet
