#include "core/metrics/page_server.h"

#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <sys/socket.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/base/environment.h"
#include "core/base/host_connections.h"
#include "core/base/host_port.h"
#include "core/base/mutex.h"
#include "core/base/peer_name.h"
#include "core/base/thread_pool.h"
#include "core/tls/httpd/http_daemon.h"

namespace chainfleet {
namespace {

// docs/reference/limits.md explains these to operators.
constexpr int kConnections = 128;
constexpr int kConnectionsOfAHost = kConnections * 3 / 4;
// The daemon still has a connection for a moment after another one has taken its place.
constexpr HttpDaemonBounds kDaemonBounds{.connections = 2 * kConnections, .silence = 2, .header_bytes = 16 << 10};

// Takes the same time for every wrong token of the right length.
bool HasToken(MHD_Connection* connection, std::string_view token) {
  if (token.empty()) return true;
  constexpr std::string_view kScheme = "Bearer ";
  const char* header = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
  const std::string_view given = header == nullptr ? "" : header;
  return given.size() == kScheme.size() + token.size() && given.starts_with(kScheme) &&
         gnutls_memcmp(given.data() + kScheme.size(), token.data(), token.size()) == 0;
}

struct PageReply {
  unsigned code;
  std::string_view content_type;
  std::string_view body;
  std::pair<const char*, const char*> header = {};  // one more
};

// `body` outlives the reply if `mode` is MHD_RESPMEM_PERSISTENT.
MHD_Result Send(MHD_Connection* connection, const PageReply& reply, MHD_ResponseMemoryMode mode) {
  MHD_Response* const response =
      MHD_create_response_from_buffer(reply.body.size(), const_cast<char*>(reply.body.data()), mode);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, std::string(reply.content_type).c_str());
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  if (reply.header.first != nullptr) MHD_add_response_header(response, reply.header.first, reply.header.second);
  const MHD_Result queued = MHD_queue_response(connection, reply.code, response);
  MHD_destroy_response(response);
  return queued;
}

// A request for a page. The daemon's thread owns it, except while the page is made.
struct Visit {
  MHD_Connection* connection;
  const TextPage* page;
  bool is_asked = false;
  std::shared_ptr<const std::string> body;  // once the page is made
};

// Returns the number that OpenConnections gave the connection.
uintptr_t NumberOf(MHD_Connection* connection) {
  return reinterpret_cast<uintptr_t>(
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
}

// Open connections without those that had to leave. Used by the daemon's thread.
class OpenConnections {
 public:
  // Makes room for a connection of `peer`. False if all are being answered.
  bool MakeRoom(const std::string& peer) {
    if (!of_hosts_.HasRoom(peer)) return CloseOldest(HostOf(peer));
    return std::ssize(open_) < kConnections || CloseOldest("");
  }

  // Returns the number of the connection.
  uintptr_t Add(MHD_Connection* connection) {
    const int socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const std::string peer = PeerOf(connection);
    of_hosts_.Add(peer);
    open_[++newest_] = {socket, peer};
    return newest_;
  }

  void Remove(uintptr_t number) {
    if (const auto at = open_.find(number); at != open_.end()) Erase(at);
  }

  // False if the connection had to leave: a request that it sent before may still arrive.
  bool SetWaiting(uintptr_t number, bool waits) {
    const auto at = open_.find(number);
    if (at == open_.end()) return false;
    at->second.waits_for_page = waits;
    return true;
  }

 private:
  struct Open {
    int socket;
    std::string peer;
    bool waits_for_page = false;
  };

  // `host` "": of any host.
  bool CloseOldest(const std::string& host) {
    for (auto at = open_.begin(); at != open_.end(); ++at) {
      const Open& open = at->second;
      if (open.waits_for_page || !(host.empty() || HostOf(open.peer) == host)) continue;
      ::shutdown(open.socket, SHUT_RDWR);  // the daemon then closes it
      Erase(at);
      return true;
    }
    return false;
  }

  void Erase(std::map<uintptr_t, Open>::iterator at) {
    of_hosts_.Remove(at->second.peer);
    open_.erase(at);
  }

  std::map<uintptr_t, Open> open_;  // by number: oldest first
  uintptr_t newest_ = 0;
  HostConnections of_hosts_{kConnectionsOfAHost};
};

}  // namespace

class PageServer::Connections {
 public:
  Connections(const TlsFiles& tls, std::map<std::string, TextPage> pages, const Reread<std::string>& token,
              OnRefusedPage on_refused)
      : tls_(tls), pages_(std::move(pages)), token_(token), on_refused_(std::move(on_refused)) {}

  ~Connections() {
    {
      const MutexLock lock(&mutex_);
      is_stopping_ = true;
    }
    maker_.Stop();  // resumes every connection
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }

  // Returns the bound port. Errors of StartHttpDaemon.
  absl::StatusOr<int> Listen(const HostPort& address) {
    CHAINFLEET_ASSIGN_OR_RETURN(daemon_, StartHttpDaemon(address, kDaemonBounds, &tls_,
                                                         {&MayConnect, &OnConnection, &OnRequest, &OnCompleted}, this));
    return PortOf(daemon_);
  }

 private:
  static MHD_Result MayConnect(void* self, const sockaddr* from, socklen_t bytes) {
    return static_cast<Connections*>(self)->open_.MakeRoom(PeerName(from, bytes)) ? MHD_YES : MHD_NO;
  }

  static void OnConnection(void* self, MHD_Connection* connection, void** number, MHD_ConnectionNotificationCode code) {
    auto* const connections = static_cast<Connections*>(self);
    connections->tls_.OnConnection(connection, code);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) return connections->open_.Remove(NumberOf(connection));
    *number = reinterpret_cast<void*>(connections->open_.Add(connection));
  }

  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* url, const char* method,
                              const char* /*version*/, const char* /*data*/, size_t* size, void** state) {
    auto* const connections = static_cast<Connections*>(self);
    auto* const visit = static_cast<Visit*>(*state);
    if (visit == nullptr) return connections->Begin(connection, url, method, state);
    if (*size > 0) return MHD_NO;  // a GET has no body
    if (!visit->is_asked) return connections->Ask(visit);
    connections->open_.SetWaiting(NumberOf(connection), false);
    if (visit->body == nullptr) return MHD_NO;
    return Send(connection, {MHD_HTTP_OK, visit->page->content_type, *visit->body}, MHD_RESPMEM_PERSISTENT);
  }

  static void OnCompleted(void*, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
    delete static_cast<Visit*>(*state);
  }

  // Answers at once unless the request may have its page.
  MHD_Result Begin(MHD_Connection* connection, const char* url, std::string_view method, void** state) const {
    const auto refuse = [&](const PageReply& reply) { return Send(connection, reply, MHD_RESPMEM_MUST_COPY); };
    const auto page = pages_.find(url);
    if (page == pages_.end()) return refuse({MHD_HTTP_NOT_FOUND, "text/plain", "no such page\n"});
    if (method != MHD_HTTP_METHOD_GET) {
      return refuse({MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", "send GET\n", {MHD_HTTP_HEADER_ALLOW, "GET"}});
    }
    if (!page->second.is_public && !HasToken(connection, *token_.Current())) {
      if (on_refused_) on_refused_(PeerOf(connection), page->first);
      return refuse({MHD_HTTP_UNAUTHORIZED,
                     "text/plain",
                     absl::StrCat("send \"Authorization: Bearer TOKEN\" with the token that ", kMetricsToken, " or ",
                                  kMetricsToken, "_FILE gives this process\n"),
                     {MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer"}});
    }
    *state = new Visit{connection, &page->second};
    return MHD_YES;
  }

  // The connection is suspended until its page is made, so that no time limit applies to it meanwhile.
  MHD_Result Ask(Visit* visit) {
    const MutexLock lock(&mutex_);
    if (is_stopping_ || !open_.SetWaiting(NumberOf(visit->connection), true)) return MHD_NO;
    visit->is_asked = true;
    MHD_suspend_connection(visit->connection);
    std::vector<Visit*>& waiting = waiting_[visit->page];
    waiting.push_back(visit);
    if (waiting.size() == 1) maker_.Schedule([this, page = visit->page] { Make(page); });
    return MHD_YES;
  }

  // Makes the page once for all visits that wait for it now. Later ones wait for a newer page.
  void Make(const TextPage* page) {
    std::vector<Visit*> visits;
    bool is_stopping = false;
    {
      const MutexLock lock(&mutex_);
      visits = std::exchange(waiting_[page], {});
      is_stopping = is_stopping_;
    }
    const absl::Cleanup resume = [&visits] {
      for (Visit* visit : visits) MHD_resume_connection(visit->connection);
    };
    if (is_stopping) return;
    const auto body = std::make_shared<const std::string>(page->make());
    for (Visit* visit : visits) visit->body = body;
  }

  TlsDaemon tls_;
  const std::map<std::string, TextPage> pages_;
  const Reread<std::string> token_;  // empty: all pages are public
  const OnRefusedPage on_refused_;   // may be null
  OpenConnections open_;
  Mutex mutex_;
  bool is_stopping_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  std::map<const TextPage*, std::vector<Visit*>> waiting_ CHAINFLEET_GUARDED_BY(mutex_);
  MHD_Daemon* daemon_ = nullptr;
  ThreadPool maker_{1};  // one page at a time
};

PageServer::PageServer() = default;
PageServer::~PageServer() = default;

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const Endpoint& endpoint,
                                                              std::map<std::string, TextPage> pages,
                                                              const Reread<std::string>& token,
                                                              OnRefusedPage on_refused) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(endpoint.address);
  if (!parsed.ok()) return Annotate(parsed.status(), "metrics address");
  std::unique_ptr<PageServer> server(new PageServer);
  server->connections_ = std::make_unique<Connections>(endpoint.tls, std::move(pages), token, std::move(on_refused));
  const absl::StatusOr<int> port = server->connections_->Listen(*parsed);
  if (!port.ok()) return Annotate(port.status(), "metrics");
  server->address_ = absl::StrCat(parsed->host, ":", *port);
  return server;
}

}  // namespace chainfleet
