#include "core/metrics/page_server.h"

#include <CivetServer.h>

#include <exception>
#include <list>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/environment.h"
#include "core/base/host_port.h"
#include "core/base/mutex.h"

namespace chainfleet {
namespace {

// A client that sends nothing occupies one thread until the request times out. The other threads answer meanwhile.
constexpr const char* kThreads = "32";
constexpr const char* kRequestTimeoutMs = "1000";

// Takes the same time for every wrong token of the right length.
bool IsSameToken(std::string_view given, std::string_view token) {
  if (given.size() != token.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < token.size(); ++i) difference |= static_cast<unsigned>(given[i] ^ token[i]);
  return difference == 0;
}

bool HasToken(const mg_connection* connection, std::string_view token) {
  constexpr std::string_view kScheme = "Bearer ";
  const char* header = mg_get_header(connection, "Authorization");
  const std::string_view given = header == nullptr ? "" : header;
  return given.starts_with(kScheme) && IsSameToken(given.substr(kScheme.size()), token);
}

void Refuse(mg_connection* connection) {
  const std::string body = absl::StrCat("send \"Authorization: Bearer TOKEN\" with the token that ", kMetricsToken,
                                        " or ", kMetricsToken, "_FILE gives this process\n");
  const std::string reply = absl::StrCat(
      "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Type: text/plain\r\nContent-Length: ",
      body.size(), "\r\nConnection: close\r\n\r\n", body);
  mg_write(connection, reply.data(), reply.size());
}

class MadePage final : public CivetHandler {
 public:
  MadePage(TextPage page, const std::string& token, Mutex* making)
      : page_(std::move(page)), token_(page_.is_public ? "" : token), making_(making) {}

  bool handleGet(CivetServer*, mg_connection* connection) override {
    if (!token_.empty() && !HasToken(connection, token_)) {
      Refuse(connection);
      return true;
    }
    const std::string body = Make();
    mg_send_http_ok(connection, page_.content_type.c_str(), static_cast<long long>(body.size()));
    mg_write(connection, body.data(), body.size());
    return true;
  }

 private:
  std::string Make() const {
    MutexLock lock(making_);
    return page_.make();
  }

  const TextPage page_;
  const std::string token_;  // empty: none is needed
  Mutex* const making_;      // one page at a time
};

}  // namespace

struct PageServer::Impl {
  explicit Impl(const std::string& address)
      : server(std::vector<std::string>{"listening_ports", address, "num_threads", kThreads, "request_timeout_ms",
                                        kRequestTimeoutMs}) {}

  Mutex making;
  std::list<MadePage> handlers;
  CivetServer server;  // destroyed first, because it calls the handlers
};

PageServer::PageServer() = default;
PageServer::~PageServer() = default;

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const std::string& address,
                                                              std::map<std::string, TextPage> pages,
                                                              const std::string& token) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return Annotate(parsed.status(), "metrics address");
  std::unique_ptr<PageServer> server(new PageServer);
  try {  // civetweb throws "null context when constructing CivetServer" for a taken port
    server->impl_ = std::make_unique<Impl>(address);
  } catch (const std::exception&) {
    return WithReason(
        absl::AlreadyExistsError(absl::StrCat("cannot serve metrics on ", address, ": the port is taken or not ours")),
        "PORT_TAKEN");
  }
  for (auto& [path, page] : pages) {
    // The trailing $ makes civetweb match the whole path.
    server->impl_->server.addHandler(
        path + "$", server->impl_->handlers.emplace_back(std::move(page), token, &server->impl_->making));
  }
  const std::vector<int> ports = server->impl_->server.getListeningPorts();
  server->address_ = absl::StrCat(parsed->host, ":", ports.empty() ? 0 : ports.front());
  return server;
}

}  // namespace chainfleet
