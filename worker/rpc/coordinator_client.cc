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

using Methods = v1::WorkerService::Stub::async_interface;

constexpr absl::Duration kCommitDeadline = absl::Seconds(10);

}  // namespace

CoordinatorClient::CoordinatorClient(Options options)
    : options_(std::move(options)), lines_(options_.address, options_.tls, {"control", "blobs"}) {}

CoordinatorClient::~CoordinatorClient() { Stop(); }

void CoordinatorClient::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  for (grpc::ClientContext* context : calls_) context->TryCancel();
  while (!calls_.empty() || leaving_ > 0) idle_.Wait(&mutex_);
}

v1::WorkerSession CoordinatorClient::Session() const {
  v1::WorkerSession session;
  session.set_worker(options_.worker);
  session.set_incarnation(options_.incarnation);
  return session;
}

bool CoordinatorClient::stopped() {
  MutexLock lock(&mutex_);
  return stopped_;
}

bool CoordinatorClient::Enter(grpc::ClientContext* context, absl::Duration deadline, bool to_join) {
  if (options_.credentials != nullptr) options_.credentials->Attach(context, to_join);
  // A time span, which gRPC measures with its monotonic clock: a change of the wall clock ends no call.
  context->set_deadline(gpr_time_from_millis(absl::ToInt64Milliseconds(deadline), GPR_TIMESPAN));
  MutexLock lock(&mutex_);
  if (!stopped_) calls_.insert(context);
  return !stopped_;
}

void CoordinatorClient::Leave(grpc::ClientContext* context) {
  MutexLock lock(&mutex_);
  calls_.erase(context);
  ++leaving_;
}

void CoordinatorClient::Left() {
  MutexLock lock(&mutex_);
  --leaving_;
  idle_.SignalAll();
}

// The common part of the reactors. They own themselves from Begin to End.
template <typename Reactor>
class CoordinatorClient::Call : public Reactor {
 protected:
  explicit Call(CoordinatorClient* client) : client_(client), line_(client->lines_.current()) {}
  Methods* control() const { return client_->lines_.stub(line_, 0)->async(); }
  Methods* blobs() const { return client_->lines_.stub(line_, 1)->async(); }

  // False: this object is deleted.
  bool Begin(absl::Duration deadline, bool to_join = false) {
    joins_ = to_join;
    if (client_->Enter(&context_, deadline, to_join)) return true;
    delete this;
    return false;
  }

  // Ends OnDone. A context holds its channel. If it held the last reference, the channel would end on its own thread
  // and wait for itself, so the client is told only after the context is destroyed.
  void End() {
    CoordinatorClient* const client = client_;
    client->Leave(&context_);
    delete this;
    client->Left();
  }

  absl::Status Ended(const grpc::Status& status) {
    const absl::Status end = client_->stopped() ? FromGrpc(status) : ResetToUnavailable(FromGrpc(status));
    client_->lines_.Ended(line_, end.code());
    WorkerCredentials* const credentials = client_->options_.credentials;
    if (!absl::IsUnauthenticated(end) || credentials == nullptr || !credentials->Forget(joins_)) return end;
    return absl::UnavailableError(end.message());  // another coordinator leads, perhaps: join there
  }

  CoordinatorClient* const client_;
  const size_t line_;
  bool joins_ = false;
  grpc::ClientContext context_;
};

// A call with one request and one reply. `read` makes the result of the reply.
template <typename Request, typename Reply, typename Result>
class CoordinatorClient::Unary final : public Call<grpc::ClientUnaryReactor> {
 public:
  using Read = std::function<absl::StatusOr<Result>(const Reply&)>;
  using Method = void (Methods::*)(grpc::ClientContext*, const Request*, Reply*, grpc::ClientUnaryReactor*);
  Unary(CoordinatorClient* client, Request request, Read read, Done<Result> done)
      : Call(client), request_(std::move(request)), read_(std::move(read)), done_(std::move(done)) {}

  void Start(Method method, absl::Duration deadline) {
    if (!Begin(deadline)) return;
    (this->control()->*method)(&context_, &request_, &reply_, this);
    StartCall();
  }

  void OnDone(const grpc::Status& status) override {
    done_(status.ok() ? read_(reply_) : Ended(status));
    End();
  }

 private:
  const Request request_;
  Reply reply_;
  const Read read_;
  const Done<Result> done_;
};

// Joins, then runs `next`.
class CoordinatorClient::Joining final : public Call<grpc::ClientUnaryReactor> {
 public:
  Joining(CoordinatorClient* client, std::function<void(const absl::Status&)> next)
      : Call(client), next_(std::move(next)) {}

  void Start(absl::Duration deadline) {
    if (!Begin(deadline, /*to_join=*/true)) return;
    this->control()->Join(&context_, &client_->options_.credentials->request(), &reply_, this);
    StartCall();
  }

  void OnDone(const grpc::Status& status) override {
    const bool older = status.error_code() == grpc::StatusCode::UNIMPLEMENTED;
    if (status.ok()) client_->options_.credentials->Joined(reply_);
    if (older) client_->options_.credentials->ServerIsOlder();
    next_(status.ok() || older ? absl::OkStatus() : Ended(status));
    End();
  }

 private:
  v1::JoinReply reply_;
  const std::function<void(const absl::Status&)> next_;
};

void CoordinatorClient::SignUpload(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
                                   Done<SignedUpload> done) {
  v1::SignUploadRequest request;
  *request.mutable_chain() = ToProto(chain);
  request.set_lease_epoch(lease_epoch);
  *request.mutable_blob() = ToProto(ref);
  *request.mutable_session() = Session();
  const auto read = [](const v1::SignUploadReply& reply) {
    return SignedUpload{reply.url(), {reply.headers().begin(), reply.headers().end()}};
  };
  (new Unary<v1::SignUploadRequest, v1::SignUploadReply, SignedUpload>(this, std::move(request), read, std::move(done)))
      ->Start(&Methods::SignUpload, kCommitDeadline);
}

void CoordinatorClient::Synchronize(const SynchronizeRequest& request, absl::Duration deadline,
                                    Done<SynchronizeReply> done) {
  const auto start = [this, request, deadline, done] {
    const auto read = [](const v1::SynchronizeReply& reply) { return FromProto(reply); };
    (new Unary<v1::SynchronizeRequest, v1::SynchronizeReply, SynchronizeReply>(this, ToProto(request), read, done))
        ->Start(&Methods::Synchronize, deadline);
  };
  if (options_.credentials == nullptr || !options_.credentials->MustJoin()) return start();
  const auto next = [start, done](const absl::Status& joined) { joined.ok() ? start() : done(joined); };
  (new Joining(this, next))->Start(deadline);
}

void CoordinatorClient::CommitProgress(const ProgressCommit& commit, Done<CommitReply> done) {
  v1::CommitProgressRequest request = ToProto(commit);
  const WorkerCredentials* const credentials = options_.credentials;
  const bool signs_point = credentials != nullptr && commit.resume_point.proof;
  if (credentials != nullptr && commit.segment && (credentials->signs_segments() || !signs_point)) {
    request.set_signature(credentials->Sign(SignedText(*commit.segment)));
  }
  if (signs_point) {
    request.mutable_resume_point()->mutable_proof()->set_signature(credentials->Sign(SignedText(commit.resume_point)));
  }
  const auto read = [](const v1::CommitProgressReply& reply) { return CommitReply{reply.replayed()}; };
  (new Unary<v1::CommitProgressRequest, v1::CommitProgressReply, CommitReply>(this, std::move(request), read,
                                                                              std::move(done)))
      ->Start(&Methods::CommitProgress, kCommitDeadline);
}

class CoordinatorClient::Put final : public Call<grpc::ClientWriteReactor<v1::PutBlobRequest>> {
 public:
  Put(CoordinatorClient* client, const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
      std::shared_ptr<const std::string> bytes, Done<bool> done)
      : Call(client), bytes_(std::move(bytes)), done_(std::move(done)) {
    *message_.mutable_header()->mutable_chain() = ToProto(chain);
    message_.mutable_header()->set_lease_epoch(lease_epoch);
    *message_.mutable_header()->mutable_blob() = ToProto(ref);
    *message_.mutable_header()->mutable_session() = client->Session();
  }

  void Start() {
    if (!Begin(limits::UploadTimeout(static_cast<int64_t>(bytes_->size())))) return;
    this->blobs()->PutBlob(&context_, &reply_, this);
    StartWrite(&message_);
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return;  // the server has answered already: OnDone has its status
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
      done_(Ended(status));
    }
    End();
  }

 private:
  const std::shared_ptr<const std::string> bytes_;
  const Done<bool> done_;
  v1::PutBlobRequest message_;
  v1::PutBlobReply reply_;
  size_t sent_ = 0;
};

class CoordinatorClient::Get final : public Call<grpc::ClientReadReactor<v1::Chunk>> {
 public:
  Get(CoordinatorClient* client, const BlobRef& ref, Done<std::shared_ptr<const std::string>> done)
      : Call(client), expected_(static_cast<size_t>(ref.size_bytes)), done_(std::move(done)) {
    *request_.mutable_blob() = ToProto(ref);
    *request_.mutable_session() = client->Session();
  }

  void Start() {
    if (!Begin(limits::UploadTimeout(static_cast<int64_t>(expected_)))) return;
    this->blobs()->GetBlob(&context_, &request_, this);
    StartRead(&chunk_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (bytes_->empty()) bytes_->reserve(expected_);
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
      done_(Ended(status));
    }
    End();
  }

 private:
  const size_t expected_;
  const Done<std::shared_ptr<const std::string>> done_;
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
