#include "server/rpc/bytes_in_flight.h"

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/wire/grpc_status.h"
#include "server/rpc/call_limits.h"
#include "server/rpc/method_names.h"
#include "server/rpc/peer.h"

namespace chainfleet {
namespace {

using grpc::experimental::InterceptionHookPoints;

class ReplyBound final : public grpc::experimental::Interceptor {
 public:
  ReplyBound(grpc::experimental::ServerRpcInfo* call, const google::protobuf::MethodDescriptor* method,
             BytesInFlight* bytes, const OnAnswer& on_answer)
      : call_(call),
        is_bound_(!method->client_streaming() || !method->server_streaming()),
        is_stream_(method->server_streaming()),
        bytes_(bytes),
        on_answer_(on_answer) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* hooks) override {
    if (is_bound_ && hooks->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) Hold(hooks);
    // A unary reply is held until its call is over.
    if (is_stream_ && hooks->QueryInterceptionHookPoint(InterceptionHookPoints::POST_SEND_MESSAGE)) held_.reset();
    if (hooks->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      on_answer_(*call_->server_context(), hooks->GetSendStatus().error_code() == grpc::StatusCode::CANCELLED);
    }
    hooks->Proceed();
  }

 private:
  void Hold(grpc::experimental::InterceptorBatchMethods* hooks) {
    const auto* message = static_cast<const google::protobuf::Message*>(hooks->GetSendMessage());
    if (message == nullptr) return;
    const int64_t bytes = 2 * static_cast<int64_t>(message->ByteSizeLong());  // with the serialised copy
    if (bytes <= limits::kFreeBytes) return;
    held_ = bytes_->Hold(ClientPeer(*call_->server_context()), bytes);
    if (held_ != nullptr) return;
    if (is_stream_) return call_->server_context()->TryCancel();
    hooks->ModifySendMessage(nullptr);
    hooks->ModifySendStatus(
        ToGrpc(BoundReached("bytes_in_flight",
                            "the server holds too many answers that clients have not read yet: read those "
                            "that this client asked for, and retry with backoff",
                            "QUEUE_FULL")));
  }

  grpc::experimental::ServerRpcInfo* const call_;
  const bool is_bound_, is_stream_;
  BytesInFlight* const bytes_;
  const OnAnswer& on_answer_;
  std::shared_ptr<const void> held_;
};

class ReplyBoundFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  ReplyBoundFactory(BytesInFlight* bytes, OnAnswer on_answer) : bytes_(bytes), on_answer_(std::move(on_answer)) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* call) override {
    const google::protobuf::MethodDescriptor* method = FindMethod(call->method());
    return IsOurs(method) ? new ReplyBound(call, method, bytes_, on_answer_) : nullptr;
  }

 private:
  BytesInFlight* const bytes_;
  const OnAnswer on_answer_;
};

}  // namespace

std::shared_ptr<const void> BytesInFlight::Hold(const std::string& client, int64_t bytes) {
  static const auto* const kUncounted = new std::shared_ptr<const void>(std::make_shared<int>());
  if (bytes <= limits::kFreeBytes) return *kUncounted;
  auto share = std::make_shared<BudgetShare>(budget_, client);
  if (!share->Add(bytes)) return nullptr;
  return share;
}

absl::StatusOr<std::shared_ptr<const void>> BytesInFlight::HoldRequest(const std::string& client, int64_t bytes) {
  const int64_t most = budget_.max_bytes() / 2;
  if (bytes > most) {
    return absl::ResourceExhaustedError(absl::StrCat("the request takes more memory once it is parsed than the ",
                                                     most / limits::kMiB,
                                                     " MiB that a client may hold: send less in one request"));
  }
  if (std::shared_ptr<const void> room = Hold(client, bytes)) return room;
  return BoundReached("bytes_in_flight",
                      "the requests and answers in flight leave no room for this request: retry with backoff, and read "
                      "the answers that this client asked for",
                      "QUEUE_FULL");
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeReplyBound(BytesInFlight* bytes,
                                                                                      OnAnswer on_answer) {
  return std::make_unique<ReplyBoundFactory>(bytes, std::move(on_answer));
}

}  // namespace chainfleet
