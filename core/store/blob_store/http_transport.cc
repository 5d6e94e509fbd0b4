#include "core/store/blob_store/http_transport.h"

#include <curl/curl.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/check.h"
#include "core/store/blob_store/s3_limits.h"

namespace chainfleet {

// An easy handle, which keeps its connection open between calls. Not thread-safe.
struct CurlTransport::Connection {
  Connection() : curl(curl_easy_init()) { CHAINFLEET_CHECK(curl != nullptr); }
  ~Connection() { curl_easy_cleanup(curl); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  CURL* const curl;
};

namespace {

struct Receiver {
  HttpReply reply;
  int64_t max_bytes = 0;
  bool too_long = false;
};

size_t ReceiveBody(char* data, size_t, size_t size, void* user) {
  auto* receiver = static_cast<Receiver*>(user);
  receiver->too_long = static_cast<int64_t>(receiver->reply.body.size() + size) > receiver->max_bytes;
  if (receiver->too_long) return 0;
  receiver->reply.body.append(data, size);
  return size;
}

size_t ReceiveHeader(char* data, size_t, size_t size, void* user) {
  auto* receiver = static_cast<Receiver*>(user);
  const absl::string_view line(data, size);
  const size_t colon = line.find(':');
  if (absl::StartsWith(line, "HTTP/")) {
    receiver->reply.headers.clear();  // an interim reply may have come first
  } else if (colon != absl::string_view::npos) {
    receiver->reply.headers[absl::AsciiStrToLower(line.substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return size;
}

struct FreeHeaders {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeHeaders>;

HeaderList HeadersOf(const HttpRequest& request) {
  HeaderList list;
  const auto append = [&list](const std::string& line) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    CHAINFLEET_CHECK(longer != nullptr);
    (void)list.release();
    list.reset(longer);
  };
  for (const auto& [name, value] : request.headers) append(absl::StrCat(name, ": ", value));
  append("Content-Type: application/octet-stream");
  append("Expect:");  // otherwise libcurl waits for the server before each large body
  return list;
}

void SetMethod(CURL* curl, const HttpRequest& request) {
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method == "HEAD") curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  if (request.method != "PUT" && request.method != "POST") return;
  // POSTFIELDS does not copy the body, and libcurl sends it again on a new connection if the old one was dead.
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
}

int IsStopped(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return *static_cast<const std::atomic<bool>*>(user) ? 1 : 0;
}

void SetLimits(CURL* curl, const HttpRequest& request) {
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, absl::ToInt64Milliseconds(limits::kS3ConnectTimeout));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, absl::ToInt64Milliseconds(request.timeout));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(absl::ToInt64Seconds(request.stall_timeout)));
}

}  // namespace

CurlTransport::CurlTransport(std::string ca_bundle) : ca_bundle_(std::move(ca_bundle)) {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHAINFLEET_CHECK(initialized == CURLE_OK);
}

CurlTransport::~CurlTransport() = default;

std::unique_ptr<CurlTransport::Connection> CurlTransport::Take() {
  MutexLock lock(&mutex_);
  if (idle_.empty()) return std::make_unique<Connection>();
  std::unique_ptr<Connection> connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

absl::StatusOr<HttpReply> CurlTransport::Send(const HttpRequest& request) {
  std::unique_ptr<Connection> connection = Take();
  CURL* const curl = connection->curl;
  curl_easy_reset(curl);  // resets options only: the connection stays open
  const HeaderList headers = HeadersOf(request);
  Receiver receiver{.max_bytes = request.max_reply_bytes};
  char words[CURL_ERROR_SIZE] = "";
  SetLimits(curl, request);
  SetMethod(curl, request);
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, IsStopped);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &stopped_);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ReceiveBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, ReceiveHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, words);
  if (!ca_bundle_.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, ca_bundle_.c_str());
  const CURLcode result = curl_easy_perform(curl);
  if (receiver.too_long) {
    return absl::ResourceExhaustedError(absl::StrCat("the answer is longer than ", request.max_reply_bytes, " bytes"));
  }
  if (result != CURLE_OK) return absl::UnavailableError(words[0] != '\0' ? words : curl_easy_strerror(result));
  long code = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
  receiver.reply.code = static_cast<int>(code);
  MutexLock lock(&mutex_);
  idle_.push_back(std::move(connection));
  return std::move(receiver.reply);
}

}  // namespace chainfleet
