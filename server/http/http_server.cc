#include "server/http/http_server.h"

#include <microhttpd.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/host_connections.h"
#include "core/base/host_port.h"
#include "core/base/peer_name.h"
#include "core/base/percent.h"
#include "core/base/trusted_proxies.h"
#include "core/tls/httpd/http_daemon.h"
#include "server/http/error_reply.h"
#include "server/http/exchange_table.h"
#include "server/http/http_limits.h"

namespace chainfleet {
namespace {

MHD_Result KeepHeader(void* head, MHD_ValueKind, const char* name, const char* value) {
  const std::string key = absl::AsciiStrToLower(name);
  std::string& kept = static_cast<WebHead*>(head)->headers[key];
  const bool goes_on = key == kForwardedForHeader && !kept.empty();
  kept = absl::StrCat(goes_on ? kept + "," : "", value == nullptr ? "" : value);
  return MHD_YES;
}

std::string Decoded(const char* text) {
  const std::string given = text == nullptr ? "" : text;
  return PercentDecoded(given).value_or(given);
}

MHD_Result KeepArgument(void* head, MHD_ValueKind, const char* name, const char* value) {
  static_cast<WebHead*>(head)->query.emplace_back(Decoded(name), Decoded(value));
  return MHD_YES;
}

// Why the body cannot be taken, whoever sends it.
std::optional<WebReply> RefuseBody(const WebHead& head, bool* is_early) {
  const std::string length = head.Header("content-length");
  int64_t bytes = 0;
  if (!length.empty() &&
      (!absl::SimpleAtoi(length, &bytes) || bytes < 0 || head.headers.contains("transfer-encoding"))) {
    *is_early = true;
    return ErrorReply(400, "the headers give no clear length of the body: send Content-Length alone");
  }
  *is_early = bytes > limits::kHttpSkippedBytes;
  if (bytes > limits::kHttpBodyBytes) return BodyTooLarge();
  const std::string encoding = head.BodyEncoding();
  if (encoding.empty() || encoding == "gzip" || encoding == "deflate") return std::nullopt;
  return ErrorReply(415, absl::StrCat("this server takes bodies of Content-Encoding gzip or deflate, not ", encoding));
}

void FreeReply(void* reply) { delete static_cast<WebReply*>(reply); }

ssize_t ReadStream(void* reply, uint64_t /*position*/, char* to, size_t most) {
  const ssize_t read = static_cast<WebReply*>(reply)->stream->Read(to, most);
  if (read == WebStream::kCut) return static_cast<ssize_t>(MHD_CONTENT_READER_END_WITH_ERROR);
  return read == WebStream::kEnd ? static_cast<ssize_t>(MHD_CONTENT_READER_END_OF_STREAM) : read;
}

// Takes `reply`, except if it returns null.
MHD_Response* ResponseOf(MHD_Connection* connection, WebReply* reply) {
  if (reply->stream == nullptr) {
    return MHD_create_response_from_buffer_with_free_callback_cls(reply->body.size(), reply->body.data(), FreeReply,
                                                                  reply);
  }
  reply->stream->Open([connection] { MHD_suspend_connection(connection); },
                      [connection] { MHD_resume_connection(connection); });
  return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, limits::kStreamBlockBytes, ReadStream, reply, FreeReply);
}

MHD_Result Send(MHD_Connection* connection, WebReply reply) {
  auto* const kept = new WebReply(std::move(reply));
  MHD_Response* const response = ResponseOf(connection, kept);
  if (response == nullptr) {
    delete kept;
    return MHD_NO;
  }
  MHD_add_response_header(response, "Content-Type", kept->content_type.c_str());
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "Cache-Control", "no-store");
  for (const auto& [name, value] : kept->headers) MHD_add_response_header(response, name.c_str(), value.c_str());
  const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(kept->code), response);
  MHD_destroy_response(response);
  return queued;
}

// One request. The daemon's thread owns it.
struct Exchange {
  MHD_Connection* connection = nullptr;
  int socket = -1;
  WebRequest request;
  std::optional<WebReply> known;  // the reply, once it is known
  bool keeps_body = false, is_early = false, is_answering = false;
  int64_t received = 0;
};

// False if the connection must be closed.
bool Receive(absl::string_view part, Exchange* exchange) {
  exchange->received += static_cast<int64_t>(part.size());
  if (exchange->received > limits::kHttpSkippedBytes) return false;
  if (!exchange->keeps_body) return true;
  if (exchange->received > limits::kHttpBodyBytes) {  // a chunked body, whose length was not known
    exchange->known = BodyTooLarge();
  } else if (!exchange->request.held->Add(static_cast<int64_t>(part.size()))) {
    exchange->known = ErrorReply(NoRoom());
  } else {
    exchange->request.body.append(part.data(), part.size());
    return true;
  }
  exchange->keeps_body = false;
  exchange->request.body = {};
  return true;
}

WebHead ReadHead(MHD_Connection* connection, const char* url, const absl::string_view method,
                 const TrustedProxies& proxies) {
  WebHead head{.verb = std::string(method == MHD_HTTP_METHOD_HEAD ? MHD_HTTP_METHOD_GET : method), .path = url};
  MHD_get_connection_values(connection, MHD_HEADER_KIND, KeepHeader, &head);
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, KeepArgument, &head);
  head.peer = proxies.ClientOf(PeerOf(connection), head.Header(kForwardedForHeader));
  return head;
}

constexpr HttpDaemonBounds kBounds{
    .connections = limits::kHttpConnections, .silence = limits::kHttpSilence, .header_bytes = limits::kHttpHeaderBytes};

}  // namespace

class HttpServer::Connections : public std::enable_shared_from_this<Connections> {
 public:
  Connections(const TlsFiles& tls, std::unique_ptr<WebApplication> application, const FairBudget& bytes,
              const Clock* clock, Executor* executor, TrustedProxies proxies)
      : tls_(tls),
        application_(std::move(application)),
        executor_(executor),
        bytes_(bytes),
        proxies_(std::move(proxies)),
        exchanges_(clock) {}

  absl::Status Listen(const std::string& address) {
    CHAINFLEET_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
    CHAINFLEET_ASSIGN_OR_RETURN(
        daemon_, StartHttpDaemon(parsed, kBounds, &tls_, {&MayConnect, &OnConnection, &OnRequest, &OnCompleted}, this));
    return absl::OkStatus();
  }

  int port() const { return PortOf(daemon_); }

  // Looks at all requests every limits::kHttpWatch until the server is gone.
  void Watch() {
    executor_->ScheduleAfter(limits::kHttpWatch, [self = weak_from_this()] {
      const auto connections = self.lock();
      if (connections == nullptr) return;
      connections->exchanges_.LookAtAll();
      connections->Watch();
    });
  }

  void Stop() {
    const MHD_socket listening = MHD_quiesce_daemon(daemon_);  // ours from here on
    exchanges_.CancelAll();
    MHD_stop_daemon(daemon_);
    ::close(listening);
  }

 private:
  // libmicrohttpd's own bound for an address would count each IPv6 address of a network separately. A connection counts
  // from its start, because libmicrohttpd may drop an accepted one before that without a notice.
  static MHD_Result MayConnect(void* self, const sockaddr* from, socklen_t bytes) {
    return static_cast<Connections*>(self)->of_hosts_.HasRoom(PeerName(from, bytes)) ? MHD_YES : MHD_NO;
  }

  static void OnConnection(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode code) {
    auto* const connections = static_cast<Connections*>(self);
    connections->tls_.OnConnection(connection, code);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) return connections->of_hosts_.Remove(PeerOf(connection));
    connections->of_hosts_.Add(PeerOf(connection));
  }

  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* url, const char* method,
                              const char* /*version*/, const char* data, size_t* size, void** state) {
    auto* const connections = static_cast<Connections*>(self);
    auto* exchange = static_cast<Exchange*>(*state);
    if (exchange == nullptr) {
      *state = exchange = connections->Begin(connection, ReadHead(connection, url, method, connections->proxies_));
      if (!exchange->is_early) return MHD_YES;
    }
    if (*size > 0) {
      const bool goes_on = Receive({data, *size}, exchange);
      *size = 0;
      return goes_on ? MHD_YES : MHD_NO;
    }
    if (!exchange->known) return connections->Answer(exchange);
    if (!exchange->is_answering) connections->exchanges_.EndAnswer(exchange->socket);
    return Send(connection, *std::move(exchange->known));
  }

  static void OnCompleted(void* self, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
    const std::unique_ptr<Exchange> exchange(static_cast<Exchange*>(*state));
    if (exchange != nullptr) static_cast<Connections*>(self)->exchanges_.Remove(exchange->socket);
  }

  Exchange* Begin(MHD_Connection* connection, WebHead head) {
    auto* const exchange = new Exchange{.connection = connection};
    exchange->socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    exchange->request.held = std::make_shared<BudgetShare>(bytes_, HostOf(head.peer));
    exchange->known = RefuseBody(head, &exchange->is_early);
    if (!exchange->known) {
      WebApplication::Admission admission = application_->Admit(head);
      exchange->known = std::move(admission.reply);
      exchange->keeps_body = admission.takes_body && !exchange->known;
    }
    // A client that waits for "100 Continue" has not sent its body yet.
    exchange->is_early |= !exchange->keeps_body && head.headers.contains("expect");
    exchange->request.head = std::move(head);
    exchanges_.AddReceiving(exchange->socket);
    return exchange;
  }

  MHD_Result Answer(Exchange* exchange) {
    if (!exchanges_.BeginAnswer(exchange->socket)) {
      return Send(exchange->connection, ErrorReply(503, "the server is ending: repeat the request"));
    }
    exchange->is_answering = true;
    MHD_suspend_connection(exchange->connection);
    exchanges_.KeepCancel(exchange->socket,
                          application_->Answer(std::move(exchange->request),
                                               [this, exchange](WebReply reply) { Take(std::move(reply), exchange); }));
    return MHD_YES;
  }

  // A stream is being answered until it ends.
  void Take(WebReply reply, Exchange* exchange) {
    const std::shared_ptr<WebStream> stream = reply.stream;
    exchange->known = std::move(reply);
    if (stream == nullptr) exchanges_.EndAnswer(exchange->socket);
    // From here on the daemon's thread may delete the exchange.
    MHD_resume_connection(exchange->connection);
    if (stream == nullptr) return exchanges_.CountAnswer();
    stream->OnEnd([this] { exchanges_.CountAnswer(); });
  }

  TlsDaemon tls_;
  const std::unique_ptr<WebApplication> application_;
  Executor* const executor_;
  const FairBudget bytes_;
  const TrustedProxies proxies_;
  ExchangeTable exchanges_;
  HostConnections of_hosts_{limits::kHttpConnectionsOfAHost};  // used by the daemon's thread
  MHD_Daemon* daemon_ = nullptr;
};

HttpServer::HttpServer(std::shared_ptr<Connections> connections) : connections_(std::move(connections)) {}

HttpServer::~HttpServer() { connections_->Stop(); }

int HttpServer::port() const { return connections_->port(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const Endpoint& endpoint,
                                                              std::unique_ptr<WebApplication> application,
                                                              const FairBudget& bytes, const Clock* clock,
                                                              Executor* executor, TrustedProxies proxies) {
  const auto connections =
      std::make_shared<Connections>(endpoint.tls, std::move(application), bytes, clock, executor, std::move(proxies));
  CHAINFLEET_RETURN_IF_ERROR(Annotate(connections->Listen(endpoint.address), "--http-listen"));
  connections->Watch();
  return std::unique_ptr<HttpServer>(new HttpServer(connections));
}

}  // namespace chainfleet
