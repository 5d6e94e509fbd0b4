#include "worker/rpc/coordinator_client.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <utility>

#include "core/base/limits.h"
#include "core/wire/grpc_status.h"
#include "core/wire/types_wire.h"
#include "core/wire/worker_wire.h"
#include "worker/rpc/worker_channel.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kCommitDeadline = absl::Seconds(10);

// A slow line still gets 1 MiB a second through.
absl::Duration TransferDeadline(int64_t bytes) {
  return absl::Seconds(10) + absl::Seconds(static_cast<double>(bytes) / static_cast<double>(limits::kMiB));
}

}  // namespace

template <typename Request, typename Response>
struct CoordinatorClient::UnaryCall {
  grpc::ClientContext context;
  Request request;
  Response response;
};

CoordinatorClient::CoordinatorClient(Options options)
    : options_(std::move(options)),
      control_(v1::WorkerService::NewStub(DialServer(options_.address, "control"))),
      blobs_(v1::WorkerService::NewStub(DialServer(options_.address, "blobs"))) {}

CoordinatorClient::~CoordinatorClient() { Stop(); }

void CoordinatorClient::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  for (grpc::ClientContext* context : calls_) context->TryCancel();
  while (!calls_.empty()) idle_.Wait(&mutex_);
}

bool CoordinatorClient::Enter(grpc::ClientContext* context, absl::Duration deadline) {
  SendToken(context, options_.token);
  // A span, which gRPC counts on its monotonic clock: a stepped calendar ends no call.
  context->set_deadline(gpr_time_from_millis(absl::ToInt64Milliseconds(deadline), GPR_TIMESPAN));
  MutexLock lock(&mutex_);
  if (!stopped_) calls_.insert(context);
  return !stopped_;
}

void CoordinatorClient::Leave(grpc::ClientContext* context) {
  MutexLock lock(&mutex_);
  calls_.erase(context);
  if (calls_.empty()) idle_.SignalAll();
}

void CoordinatorClient::Synchronize(const SynchronizeRequest& request, absl::Duration deadline,
                                    Done<SynchronizeReply> done) {
  auto call = std::make_shared<UnaryCall<v1::SynchronizeRequest, v1::SynchronizeReply>>();
  call->request = ToProto(request);
  if (!Enter(&call->context, deadline)) return;
  control_->async()->Synchronize(&call->context, &call->request, &call->response,
                                 [this, call, done = std::move(done)](const grpc::Status& status) {
                                   if (status.ok()) {
                                     done(FromProto(call->response));
                                   } else {
                                     done(FromGrpc(status));
                                   }
                                   Leave(&call->context);
                                 });
}

void CoordinatorClient::CommitProgress(const ProgressCommit& commit, const std::string& worker,
                                       const std::string& incarnation, Done<CommitReply> done) {
  auto call = std::make_shared<UnaryCall<v1::CommitProgressRequest, v1::CommitProgressReply>>();
  call->request = ToProto(
      SignedCommit{commit, worker, incarnation, options_.host, options_.device_kind, options_.numerics_version});
  if (!Enter(&call->context, kCommitDeadline)) return;
  control_->async()->CommitProgress(&call->context, &call->request, &call->response,
                                    [this, call, done = std::move(done)](const grpc::Status& status) {
                                      if (status.ok()) {
                                        done(CommitReply{call->response.replayed()});
                                      } else {
                                        done(FromGrpc(status));
                                      }
                                      Leave(&call->context);
                                    });
}

class CoordinatorClient::Put final : public grpc::ClientWriteReactor<v1::PutBlobRequest> {
 public:
  Put(CoordinatorClient* client, const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
      std::shared_ptr<const std::string> bytes, Done<bool> done)
      : client_(client), bytes_(std::move(bytes)), done_(std::move(done)) {
    *message_.mutable_header()->mutable_chain() = ToProto(chain);
    message_.mutable_header()->set_lease_epoch(lease_epoch);
    *message_.mutable_header()->mutable_blob() = ToProto(ref);
  }

  void Start() {
    if (!client_->Enter(&context_, TransferDeadline(static_cast<int64_t>(bytes_->size())))) {
      delete this;
      return;
    }
    client_->blobs_->async()->PutBlob(&context_, &reply_, this);
    StartWrite(&message_);
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return;  // the server has answered already: OnDone has its word
    if (sent_ == bytes_->size()) {
      StartWritesDone();
      return;
    }
    const size_t size = std::min(bytes_->size() - sent_, static_cast<size_t>(limits::kChunkBytes));
    message_.set_data(bytes_->data() + sent_, size);
    sent_ += size;
    StartWrite(&message_);
  }

  void OnDone(const grpc::Status& status) override {
    if (status.ok()) {
      done_(true);
    } else {
      done_(FromGrpc(status));
    }
    client_->Leave(&context_);
    delete this;
  }

 private:
  CoordinatorClient* const client_;
  const std::shared_ptr<const std::string> bytes_;
  const Done<bool> done_;
  grpc::ClientContext context_;
  v1::PutBlobRequest message_;
  v1::PutBlobReply reply_;
  size_t sent_ = 0;
};

class CoordinatorClient::Get final : public grpc::ClientReadReactor<v1::Chunk> {
 public:
  Get(CoordinatorClient* client, const BlobRef& ref, Done<std::shared_ptr<const std::string>> done)
      : client_(client), expected_(static_cast<size_t>(ref.size_bytes)), done_(std::move(done)) {
    *request_.mutable_blob() = ToProto(ref);
  }

  void Start() {
    if (!client_->Enter(&context_, TransferDeadline(static_cast<int64_t>(expected_)))) {
      delete this;
      return;
    }
    client_->blobs_->async()->GetBlob(&context_, &request_, this);
    StartRead(&chunk_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    bytes_->append(chunk_.data());
    if (bytes_->size() > expected_) {
      context_.TryCancel();
      return;
    }
    StartRead(&chunk_);
  }

  void OnDone(const grpc::Status& status) override {
    if (bytes_->size() > expected_ || (status.ok() && bytes_->size() < expected_)) {
      done_(absl::DataLossError("object " + request_.blob().name() + " has not the " + std::to_string(expected_) +
                                " bytes its record says"));
    } else if (status.ok()) {
      done_(std::shared_ptr<const std::string>(bytes_));
    } else {
      done_(FromGrpc(status));
    }
    client_->Leave(&context_);
    delete this;
  }

 private:
  CoordinatorClient* const client_;
  const size_t expected_;
  const Done<std::shared_ptr<const std::string>> done_;
  grpc::ClientContext context_;
  v1::GetBlobRequest request_;
  v1::Chunk chunk_;
  const std::shared_ptr<std::string> bytes_ = std::make_shared<std::string>();
};

void CoordinatorClient::PutBlob(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
                                std::shared_ptr<const std::string> bytes, Done<bool> done) {
  (new Put(this, chain, lease_epoch, ref, std::move(bytes), std::move(done)))->Start();
}

void CoordinatorClient::GetBlob(const BlobRef& ref, Done<std::shared_ptr<const std::string>> done) {
  (new Get(this, ref, std::move(done)))->Start();
}

}  // namespace chainfleet
