// A gRPC server on a free loopback port, and a queue in which a test waits for values of other threads.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "core/base/mutex.h"

namespace chainfleet {

class LoopbackServer {
 public:
  explicit LoopbackServer(grpc::Service* service) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(service);
    server_ = builder.BuildAndStart();
  }
  ~LoopbackServer() { server_->Shutdown(gpr_inf_past(GPR_CLOCK_MONOTONIC)); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Thread-safe.
template <typename T>
class Mailbox {
 public:
  void Put(T value) {
    MutexLock lock(&mutex_);
    values_.push_back(std::move(value));
    arrived_.SignalAll();
  }
  // Waits for the next value without a limit; the timeout of the test ends a hang.
  T Take() {
    MutexLock lock(&mutex_);
    while (values_.empty()) arrived_.Wait(&mutex_);
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

 private:
  Mutex mutex_;
  CondVar arrived_;
  std::deque<T> values_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
