#include "server/rpc/call_gate.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpcpp/impl/codegen/interceptor_common.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/wire/grpc_status.h"
#include "core/wire/parsed_bytes.h"
#include "server/rpc/bytes_in_flight.h"
#include "server/rpc/call_limits.h"
#include "server/rpc/call_turns.h"
#include "server/rpc/cancelled_calls.h"
#include "server/rpc/method_names.h"
#include "server/rpc/peer.h"
#include "server/rpc/receiving_calls.h"
#include "server/rpc/refused_peers.h"
#include "server/rpc/streamed_request.h"

namespace chainfleet {

struct CallGate::Parts : std::enable_shared_from_this<Parts> {
  Parts(const Clock* c, Executor* e, const Authenticator* a, ServerMetrics* m, AuditLog* audit,
        std::function<FrontDoor*()> d)
      : clock(c),
        executor(e),
        auth(a),
        metrics(m),
        door(std::move(d)),
        refused(audit),
        turns(e, limits::kTenantTurns) {}

  // Watches, every kReceiveInterval, until no request is being received.
  void WatchRequests() {
    if (watching.exchange(true)) return;
    executor->ScheduleAfter(limits::kReceiveInterval, [gate = weak_from_this()] {
      const std::shared_ptr<Parts> parts = gate.lock();
      if (parts == nullptr) return;
      parts->watching = false;
      if (parts->receiving.Watch(parts->clock->Monotonic()) > 0) parts->WatchRequests();
    });
  }

  const Clock* const clock;
  Executor* const executor;
  const Authenticator* const auth;
  ServerMetrics* const metrics;
  const std::function<FrontDoor*()> door;
  ReceivingCalls receiving{limits::kReceivingBytes, [this](const std::string& peer) {
                             FrontDoor* const in = door();
                             return in == nullptr ? 0 : in->BytesReceived(peer);
                           }};
  BytesInFlight bytes{limits::kBytesInFlight};
  RefusedPeers refused;
  CallTurns turns;
  CancelledCalls cancelled{limits::kCancelledCalls, limits::kCancelledWindow};
  std::atomic<bool> watching = false;
};

namespace {

using google::protobuf::Descriptor;
using grpc::internal::MethodHandler;
using HandlerParameter = MethodHandler::HandlerParameter;
using Parts = CallGate::Parts;

class Refusal final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit Refusal(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

// Calls of the method wait for their turns in a queue of their tenant. Returns the suffix of that queue's name; null if
// they take no turns.
const char* QueueOf(const google::protobuf::MethodDescriptor& method) {
  // Predictions wait for workers, and the batcher queues them by tenant. Probes must not wait for the tenant's other
  // calls, because the server would look dead, and a revocation not for the flood that it ends.
  constexpr std::array<std::string_view, 5> kWithoutTurns = {"Predict", "ModelInfer", "ServerLive", "ServerReady",
                                                             "RevokeToken"};
  // Streams last as long as their clients want.
  if (IsOfWorkers(method) || method.client_streaming() || method.server_streaming()) return nullptr;
  if (std::ranges::find(kWithoutTurns, method.name()) != kWithoutTurns.end()) return nullptr;
  if (method.name() == "ReadRows") return " rows";     // waits also for reads of rows by other tenants
  return ChangesSomething(&method) ? " changes" : "";  // reads do not wait for commits
}

void Refuse(const HandlerParameter& call, const absl::Status& status) {
  grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer> refusing(
      [&](grpc::CallbackServerContext*) { return new Refusal(status); });
  refusing.RunHandler(call);
}

// A call that waits for its request. Created with new; it deletes itself when the request arrives or the call ends.
class Receipt final : public grpc_completion_queue_functor {
 public:
  // `queue`: whose turns the call waits for; empty if it waits for none.
  Receipt(Parts* gate, MethodHandler* method, const Descriptor* type, std::string queue, const HandlerParameter& call)
      : gate_(gate),
        method_(method),
        type_(type),
        queue_(std::move(queue)),
        call_(call),
        peer_(ClientPeer(*call.server_context)) {
    functor_run = [](grpc_completion_queue_functor* self, int /*ok*/) { static_cast<Receipt*>(self)->Arrive(); };
    inlineable = 0;
  }

  void Start() {
    grpc_call* const core_call = call_.call->call();
    grpc_call_ref(core_call);
    const std::shared_ptr<grpc_call> held(core_call, grpc_call_unref);
    const std::string connection = ConnectionPeer(*call_.server_context);
    id_ = gate_->receiving.Begin(connection, gate_->clock->Monotonic(), [held](const absl::Status& why) {
      grpc_call_cancel_with_status(held.get(), static_cast<grpc_status_code>(why.code()),
                                   std::string(why.message()).c_str(), nullptr);
    });
    gate_->WatchRequests();
    grpc_op receive{};
    receive.op = GRPC_OP_RECV_MESSAGE;
    receive.data.recv_message.recv_message = &payload_;
    if (grpc_call_start_batch(core_call, &receive, 1, this, nullptr) != GRPC_CALL_OK) Arrive();
  }

 private:
  void Arrive() {
    const std::shared_ptr<Receipt> self(this);
    const absl::Status admitted = payload_ == nullptr ? absl::OkStatus() : Admit();
    const absl::Status dropped = gate_->receiving.End(id_);  // its bytes count until they count as being answered
    if (payload_ == nullptr) {
      // The client of a dropped call already has its status. The call must not count as one that its client cancelled.
      return Refuse(call_,
                    dropped.ok() ? absl::CancelledError("the call ended before its request was whole") : dropped);
    }
    if (!admitted.ok()) {
      grpc_byte_buffer_destroy(payload_);
      return Refuse(call_, admitted);
    }
    if (queue_.empty()) return Hand();
    gate_->turns.Take(queue_, call_.server_context, [self] { self->Hand(); });
  }

  absl::Status Admit() {
    if (payload_->type == GRPC_BB_RAW && payload_->data.raw.compression != GRPC_COMPRESS_NONE) {
      return absl::UnimplementedError("this server takes no compressed requests: send them without compression");
    }
    CHAINFLEET_ASSIGN_OR_RETURN(room_, gate_->bytes.HoldRequest(peer_, BytesToHold()));
    return absl::OkStatus();
  }

  // The bytes of the request and of the message that is parsed from them.
  int64_t BytesToHold() const {
    const auto bytes = static_cast<int64_t>(grpc_byte_buffer_length(payload_));
    if (bytes <= limits::kUnmeasuredBytes) return bytes;
    std::deque<google::protobuf::io::ArrayInputStream> slices;
    std::vector<google::protobuf::io::ZeroCopyInputStream*> parts;
    const grpc_slice_buffer& buffer = payload_->data.raw.slice_buffer;
    for (size_t i = 0; i < buffer.count; ++i) {
      const grpc_slice& slice = buffer.slices[i];
      const auto size = static_cast<int>(GRPC_SLICE_LENGTH(slice));
      parts.push_back(&slices.emplace_back(GRPC_SLICE_START_PTR(slice), size));
    }
    google::protobuf::io::ConcatenatingInputStream wire(parts.data(), static_cast<int>(parts.size()));
    return bytes + ParsedBytes(*type_, &wire, limits::kConnectionBytesInFlight);
  }

  // Continues as gRPC does with a request that it has read itself.
  void Hand() {
    grpc::Status parsed;
    void* state = nullptr;
    void* const request = method_->Deserialize(call_.call->call(), payload_, &parsed, &state);
    if (!parsed.ok()) {
      // A unary method leaves its state to the caller. Release is virtual and has the same vtable slot in the holder of
      // any two messages.
      using Holder = grpc::MessageHolder<google::protobuf::Message, google::protobuf::Message>;
      if (state != nullptr) static_cast<Holder*>(state)->Release();
      return Refuse(call_, NotOfThisMethod());
    }
    grpc::internal::InterceptorBatchMethodsImpl hooks;
    hooks.SetCall(call_.call);
    hooks.SetReverse();
    hooks.AddInterceptionHookPoint(grpc::experimental::InterceptionHookPoints::POST_RECV_MESSAGE);
    hooks.SetRecvMessage(request, nullptr);
    hooks.RunInterceptors([] {});  // our interceptors finish synchronously
    method_->RunHandler({call_.call, call_.server_context, request, grpc::Status(), state,
                         [room = room_, end = call_.call_requester] { end(); }});
  }

  Parts* const gate_;
  MethodHandler* const method_;
  const Descriptor* const type_;  // the request's
  const std::string queue_;
  const HandlerParameter call_;
  const std::string peer_;
  uint64_t id_ = 0;
  grpc_byte_buffer* payload_ = nullptr;
  std::shared_ptr<const void> room_;
};

class GuardedMethod final : public MethodHandler {
 public:
  GuardedMethod(std::shared_ptr<Parts> gate, MethodHandler* handler, const google::protobuf::MethodDescriptor& method)
      : gate_(std::move(gate)),
        handler_(handler),
        type_(method.client_streaming() ? nullptr : method.input_type()),
        queue_(QueueOf(method)) {}

  void RunHandler(const HandlerParameter& call) override {
    const auto* context = static_cast<grpc::CallbackServerContext*>(call.server_context);
    const absl::StatusOr<Principal> caller = gate_->auth->CallerOf(*context);
    if (absl::IsUnauthenticated(caller.status())) return RefuseToken(call, caller.status());
    if (!caller.ok()) return Refuse(call, caller.status());
    if (type_ == nullptr) return handler_->RunHandler(call);
    const bool takes_turns = queue_ != nullptr && gate_->auth->wants_tokens();
    const std::string queue = takes_turns ? caller->tenant + queue_ : "";
    (new Receipt(gate_.get(), handler_, type_, queue, call))->Start();
  }

 private:
  void RefuseToken(const HandlerParameter& call, const absl::Status& status) {
    if (gate_->metrics != nullptr) gate_->metrics->CountRefusedToken();
    const absl::Duration delay = gate_->refused.Refuse(ClientPeer(*call.server_context), gate_->clock->Monotonic());
    if (delay <= absl::ZeroDuration()) return Refuse(call, status);
    gate_->executor->ScheduleAfter(delay, [call, status] { Refuse(call, status); });
  }

  const std::shared_ptr<Parts> gate_;
  MethodHandler* const handler_;  // the guarded service's
  const Descriptor* const type_;  // the only request's; null if the client streams requests
  const char* const queue_;       // as QueueOf
};

class GuardedService final : public grpc::Service {
 public:
  GuardedService(const std::shared_ptr<Parts>& gate, grpc::Service* service,
                 const google::protobuf::ServiceDescriptor& contract) {
    MethodHandler* (grpc::Service::*const method_of)(int) = &GuardedService::GetHandler;
    for (int i = 0; i < contract.method_count(); ++i) {
      const google::protobuf::MethodDescriptor& method = *contract.method(i);
      paths_.push_back(absl::StrCat("/", contract.full_name(), "/", method.name()));
      // gRPC lets streaming methods read their requests themselves.
      const auto kind = method.client_streaming() && !method.server_streaming()
                            ? grpc::internal::RpcMethod::CLIENT_STREAMING
                            : grpc::internal::RpcMethod::BIDI_STREAMING;
      AddMethod(new grpc::internal::RpcServiceMethod(paths_.back().c_str(), kind, nullptr));
      MarkMethodCallback(i, new GuardedMethod(gate, (service->*method_of)(i), method));
    }
  }

 private:
  std::deque<std::string> paths_;
};

}  // namespace

CallGate::CallGate(const Clock* clock, Executor* executor, const Authenticator* auth, ServerMetrics* metrics,
                   AuditLog* audit, std::function<FrontDoor*()> door)
    : parts_(std::make_shared<Parts>(clock, executor, auth, metrics, audit, std::move(door))) {}

CallGate::~CallGate() = default;

BytesInFlight* CallGate::bytes() { return &parts_->bytes; }

void CallGate::EndTurn(const grpc::ServerContextBase& call) { parts_->turns.End(&call); }

std::unique_ptr<grpc::Service> CallGate::Guard(grpc::Service* service, const std::string& name) {
  const auto* contract = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
  return std::make_unique<GuardedService>(parts_, service, *contract);
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallGate::BoundReplies() {
  return MakeReplyBound(&parts_->bytes, [parts = parts_](const grpc::ServerContextBase& call, bool cancelled) {
    parts->turns.End(&call);  // before the client has read the answer, which may take long
    if (!cancelled) return;
    const std::string peer = ConnectionPeer(call);
    if (!parts->cancelled.Count(peer, parts->clock->Monotonic())) return;
    if (FrontDoor* const door = parts->door()) door->Cut(peer);
  });
}

}  // namespace chainfleet
