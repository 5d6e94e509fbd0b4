#include "server/rpc/gateway/gateway.h"

#include <arpa/inet.h>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/message.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/host_port.h"
#include "core/formats/gzip.h"
#include "core/wire/forwarded_peer.h"
#include "core/wire/grpc_status.h"
#include "server/http/console.h"
#include "server/http/error_reply.h"
#include "server/http/http_limits.h"
#include "server/rpc/gateway/message_fields.h"
#include "server/rpc/gateway/openapi.h"
#include "server/rpc/gateway/routes.h"

namespace chainfleet {
namespace {

using google::protobuf::Message;

constexpr char kHealthPath[] = "/readyz", kHealthMethod[] = "/grpc.health.v1.Health/Check";
constexpr size_t kMaxMetadataBytes = 4096;
constexpr absl::Duration kPatience = absl::Seconds(10);  // calls have ended; their callbacks are about to
constexpr int64_t kSmallBytes = 64 * limits::kKiB;       // translated at once, by the thread that has them

std::string PathOf(const google::protobuf::MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

std::unique_ptr<Message> NewMessage(const google::protobuf::Descriptor* type) {
  return std::unique_ptr<Message>(google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

// gRPC ends the process for metadata that it may not send.
bool IsMetadata(const std::string& value) {
  return value.size() <= kMaxMetadataBytes &&
         std::ranges::all_of(value, [](unsigned char c) { return absl::ascii_isprint(c); });
}

// The header for `authorize` and for the call. No token has the bytes that gRPC cannot send.
std::string AuthorizationOf(const WebHead& head) {
  std::string value = head.Header("authorization");
  return IsMetadata(value) ? value : "not a token";
}

// Pages of other sites may not use a visitor's browser to call this server.
std::optional<WebReply> RefuseSite(const WebHead& head, bool is_local) {
  const std::string host = head.Header("host"), origin = head.Header("origin");
  if (is_local && !IsLocalName(host)) {
    return ErrorReply(403, "this server has no tokens and serves this host only: call it by 127.0.0.1 or localhost");
  }
  if (origin.empty() || origin == "http://" + host || origin == "https://" + host) return std::nullopt;
  return ErrorReply(403, "this server takes no requests from pages of other sites");
}

// Room for what is made of the body: the messages that carry it.
absl::Status HoldUpload(const WebRequest& request) {
  return request.held->Add(static_cast<int64_t>(request.body.size())) ? absl::OkStatus() : NoRoom();
}

// Replaces a compressed body by its content. Returns the reply if the body cannot be taken.
std::optional<WebReply> Unpack(WebRequest* request) {
  if (request->body.empty() || request->head.BodyEncoding().empty()) return std::nullopt;
  int64_t bytes = 0;
  const auto admit = [&](int64_t more) {
    bytes += more;
    return bytes <= limits::kHttpBodyBytes && request->held->Add(more) ? absl::OkStatus() : NoRoom();
  };
  absl::StatusOr<std::string> content = Gunzip(request->body, admit);
  if (bytes > limits::kHttpBodyBytes) return BodyTooLarge();
  if (!content.ok()) return ErrorReply(Annotate(content.status(), "the body"));
  request->body = *std::move(content);
  return std::nullopt;
}

// The reply to a call that failed.
WebReply FailureReply(const grpc::Status& failed) {
  const absl::Status status = ResetToUnavailable(FromGrpc(failed));
  return ErrorReply(status, RequestIdOf(status));
}

// The reply of the health service, whose messages the server does not compile: field 1 is 1 while it serves.
WebReply HealthReply(const Message& reply) {
  const google::protobuf::UnknownFieldSet& fields = reply.GetReflection()->GetUnknownFields(reply);
  const bool serves = fields.field_count() == 1 &&
                      fields.field(0).type() == google::protobuf::UnknownField::TYPE_VARINT &&
                      fields.field(0).varint() == 1;
  return serves ? WebReply{.body = R"({"ready":true})"}
                : ErrorReply(503, "the server does not serve: it stands by or ends");
}

}  // namespace

bool IsLocalName(std::string host) {
  if (const size_t port = host.rfind(':'); port != host.npos && host.find(']', port) == host.npos) host.resize(port);
  in_addr address{};
  if (inet_pton(AF_INET, host.c_str(), &address) == 1) return ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
  return host.empty() || absl::EqualsIgnoreCase(host, "localhost") || host == "[::1]";
}

struct Gateway::Call {
  std::shared_ptr<void> alive;  // outlives the context
  WebRequest request;
  std::function<void(WebReply)> done;
  RouteMatch match;
  std::string method;
  std::unique_ptr<Translation> translation;
  std::unique_ptr<Message> message, reply;
  grpc::ClientContext context;
};

// A server stream. Messages in JSON are server-sent events: each as "data", then "end", or "error" with the body of an
// error. Other messages are the parts of one body, which is cut if the call fails. It deletes itself.
class Gateway::Events final : public grpc::ClientBidiReactor<Message, Message> {
 public:
  explicit Events(std::shared_ptr<Call> call) : call_(std::move(call)) {
    stream_ = std::make_shared<WebStream>([call = call_] { call->context.TryCancel(); });
  }

  void Start() {
    AddHold();  // reads begin outside of gRPC's callbacks
    StartWriteLast(call_->message.get(), grpc::WriteOptions());
    StartRead(call_->reply.get());
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return RemoveHold();
    if (!Hold(static_cast<int64_t>(call_->reply->ByteSizeLong()) * limits::kReplyFactor)) {
      call_->context.TryCancel();
      return RemoveHold();
    }
    WebReply part = call_->translation->Write(*call_->message, *call_->reply);
    const bool is_first = !std::exchange(has_begun_, true);
    has_events_ = part.content_type == WebReply().content_type;
    stream_->Write(has_events_ ? absl::StrCat("data: ", part.body, "\n\n") : std::move(part.body),
                   [this](bool goes_on) { goes_on ? StartRead(call_->reply.get()) : RemoveHold(); });
    if (!is_first) return;
    // The stream is closed when nobody sends the reply any more.
    const std::shared_ptr<WebStream> closing(stream_.get(), [stream = stream_](WebStream*) { stream->Close(); });
    call_->done({.content_type = has_events_ ? "text/event-stream" : part.content_type, .stream = closing});
  }

  void OnDone(const grpc::Status& status) override {
    const std::unique_ptr<Events> self(this);
    const WebReply error = has_room_ ? FailureReply(status) : ErrorReply(NoRoom());
    if (!has_begun_) return call_->done(error);
    const bool is_whole = status.ok() && has_room_;
    if (!has_events_) return is_whole ? stream_->End("") : stream_->Cut();
    stream_->End(is_whole ? "event: end\ndata: {}\n\n" : absl::StrCat("event: error\ndata: ", error.body, "\n\n"));
  }

 private:
  // Room for the largest message of the stream so far. False if there is none.
  bool Hold(int64_t bytes) {
    has_room_ = bytes <= held_ || call_->request.held->Add(bytes - held_);
    held_ = std::max(held_, bytes);
    return has_room_;
  }

  const std::shared_ptr<Call> call_;
  std::shared_ptr<WebStream> stream_;
  int64_t held_ = 0;
  bool has_begun_ = false, has_room_ = true, has_events_ = true;
};

Gateway::Gateway(GatewayParts parts)
    : parts_(std::move(parts)),
      sites_(parts_.audit, "cross-site request refused", limits::kSlowLineInterval),
      stub_(parts_.channel) {}

Gateway::~Gateway() {
  alive_.reset();
  calls_ended_->WaitForNotificationWithTimeout(kPatience);
}

WebApplication::Admission Gateway::Admit(const WebHead& head) {
  if (auto refusal = RefuseSite(head, parts_.is_local)) {
    sites_.Refuse(head.peer, parts_.clock->Monotonic(),
                  {{"method", absl::StrCat(head.verb, " ", head.path)},
                   {"code", "PERMISSION_DENIED"},
                   {"host", head.Header("host")},
                   {"origin", head.Header("origin")}});
    return {.reply = std::move(refusal)};
  }
  const bool reads = head.verb == "GET";
  if (reads && head.path == "/healthz") return {.reply = WebReply{.body = R"({"live":true})"}};
  if (reads && head.path == "/openapi.json") return {.reply = WebReply{.body = OpenApiDocument()}};
  if (reads) {
    if (auto part = ConsolePart(head.path)) return {.reply = std::move(part)};
  }
  if (reads && head.path == kHealthPath) return {};
  const RouteMatch match = FindRoute(head.verb, head.path);
  if (match.route == nullptr && match.verbs.empty()) {
    return {.reply = ErrorReply(404, absl::StrCat("there is no ", head.path))};
  }
  if (match.route == nullptr) {
    WebReply reply = ErrorReply(405, absl::StrCat(head.path, " takes ", match.verbs, " only"));
    reply.headers.emplace_back("Allow", match.verbs);
    return {.reply = std::move(reply)};
  }
  return {.takes_body = parts_.authorize(PathOf(MethodOf(*match.route)), AuthorizationOf(head)).ok()};
}

std::function<void()> Gateway::Answer(WebRequest request, std::function<void(WebReply)> done) {
  const auto call = std::make_shared<Call>();
  call->alive = alive_;
  call->request = std::move(request);
  call->done = std::move(done);
  const bool is_packed = !call->request.head.BodyEncoding().empty();
  const int64_t bytes = is_packed ? limits::kHttpBodyBytes : static_cast<int64_t>(call->request.body.size());
  RunSized(bytes, [this, call] { Begin(call); });
  return [call] { call->context.TryCancel(); };
}

void Gateway::Begin(const std::shared_ptr<Call>& call) {
  const WebHead& head = call->request.head;
  if (head.path == kHealthPath) {
    call->method = kHealthMethod;
    call->message = std::make_unique<google::protobuf::Empty>();
    call->reply = std::make_unique<google::protobuf::Empty>();
    return Start(call);
  }
  call->match = FindRoute(head.verb, head.path);
  const google::protobuf::MethodDescriptor& method = MethodOf(*call->match.route);
  call->method = PathOf(method);
  call->message = NewMessage(&RequestOf(*call->match.route));
  call->reply = NewMessage(method.output_type());
  call->translation = call->match.route->translate();
  if (parts_.authorize(call->method, AuthorizationOf(head)).ok()) {
    if (auto refusal = Unpack(&call->request)) return call->done(*std::move(refusal));
    absl::Status read = method.client_streaming() ? HoldUpload(call->request)
                                                  : call->translation->Read(&call->request, call->message.get());
    const auto set = [&](const auto& fields) {
      for (const auto& [name, value] : fields) {
        if (read.ok()) read = SetField(name, value, call->message.get());
      }
    };
    set(head.query);
    set(call->match.fields);
    if (!read.ok()) return call->done(ErrorReply(read));
    if (!method.client_streaming()) call->request.body = {};
  }
  Start(call);
}

void Gateway::Start(const std::shared_ptr<Call>& call) {
  const WebHead& head = call->request.head;
  call->context.AddMetadata(kForwardedPeerHeader, head.peer);
  if (head.headers.contains("authorization")) call->context.AddMetadata("authorization", AuthorizationOf(head));
  for (const char* name : {kRequestIdHeader, "traceparent"}) {
    const std::string value = head.Header(name);
    if (!value.empty() && IsMetadata(value)) call->context.AddMetadata(name, value);
  }
  call->context.set_deadline(absl::ToChronoTime(parts_.clock->Wall() + limits::kEvaluateDeadline));
  const auto* const method = call->match.route == nullptr ? nullptr : &MethodOf(*call->match.route);
  if (method != nullptr && method->server_streaming()) {
    auto* const events = new Events(call);
    stub_.PrepareBidiStreamingCall(&call->context, call->method, {}, events);
    return events->Start();
  }
  const auto end = [this, call](const grpc::Status& status) {
    RunSized(static_cast<int64_t>(call->reply->ByteSizeLong()), [this, call, status] { End(call, status); });
  };
  if (method != nullptr && method->client_streaming()) {
    return UploadFile(&stub_, &call->context, *call->message, std::move(call->request.body), call->reply.get(), end);
  }
  stub_.UnaryCall(&call->context, call->method, {}, call->message.get(), call->reply.get(), end);
}

void Gateway::End(const std::shared_ptr<Call>& call, const grpc::Status& status) {
  WebReply reply;
  if (!status.ok()) {
    reply = FailureReply(status);
  } else if (call->translation == nullptr) {
    reply = HealthReply(*call->reply);
  } else if (call->request.held->Add(static_cast<int64_t>(call->reply->ByteSizeLong()) * limits::kReplyFactor)) {
    reply = call->translation->Write(*call->message, *call->reply);
    reply.held = call->request.held;
  } else {
    reply = ErrorReply(NoRoom());
  }
  const auto& metadata = call->context.GetServerTrailingMetadata();
  if (const auto id = metadata.find(kRequestIdHeader); id != metadata.end()) {
    reply.headers.emplace_back("X-Request-Id", std::string(id->second.data(), id->second.size()));
  }
  call->message.reset();
  call->reply.reset();
  call->done(std::move(reply));
}

void Gateway::RunSized(int64_t bytes, std::function<void()> work) {
  if (bytes <= kSmallBytes) return work();
  parts_.executor->Schedule(std::move(work));
}

absl::StatusOr<std::unique_ptr<HttpServer>> OpenHttp(const Endpoint& endpoint, bool is_open, GatewayParts parts) {
  CHAINFLEET_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(endpoint.address));
  parts.is_local = is_open && IsLocalName(parsed.host);
  const Clock* const clock = parts.clock;
  Executor* const executor = parts.executor;
  const FairBudget bytes = parts.bytes;
  const TrustedProxies proxies = parts.proxies;
  return HttpServer::Start(endpoint, std::make_unique<Gateway>(std::move(parts)), bytes, clock, executor, proxies);
}

}  // namespace chainfleet
