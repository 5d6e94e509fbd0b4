// One memory budget of all requests of the HTTP port and their replies, fair to the hosts that share it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "core/base/status.h"

namespace chainfleet {

// Copies share one budget, which lives as long as any copy or share of it. Thread-safe.
class HttpBytes {
 public:
  // `on_refused` may be null. It is called with each refusal, by any thread, as long as there are shares.
  explicit HttpBytes(int64_t most, std::function<void(const absl::Status& why)> on_refused = nullptr)
      : budget_(std::make_shared<Budget>(most, std::move(on_refused))) {}

 private:
  friend class HttpShare;
  struct Budget {
    Budget(int64_t the_most, std::function<void(const absl::Status&)> f) : most(the_most), on_refused(std::move(f)) {}

    const int64_t most;
    const std::function<void(const absl::Status& why)> on_refused;
    Mutex mutex;
    int64_t held CHAINFLEET_GUARDED_BY(mutex) = 0;
    std::map<std::string, int64_t> of_host CHAINFLEET_GUARDED_BY(mutex);  // hosts that hold bytes
  };
  std::shared_ptr<Budget> budget_;
};

// The bytes of one request of `host`. The destructor gives them back. Only one thread at a time may call Add.
class HttpShare {
 public:
  HttpShare(const HttpBytes& bytes, std::string host) : budget_(bytes.budget_), host_(std::move(host)) {}
  ~HttpShare();
  HttpShare(const HttpShare&) = delete;
  HttpShare& operator=(const HttpShare&) = delete;

  // Returns false and adds nothing if the host would hold more than it leaves free. Hosts that take all they can so
  // leave room to the next: they get a half, a quarter, an eighth.
  [[nodiscard]] bool Add(int64_t bytes);

 private:
  const std::shared_ptr<HttpBytes::Budget> budget_;
  const std::string host_;
  int64_t bytes_ = 0;
};

}  // namespace chainfleet
