#include "server/rpc/health_service.h"

#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/peer_name.h"
#include "core/base/status.h"
#include "core/wire/grpc_status.h"
#include "server/rpc/peer.h"

namespace chainfleet {
namespace {

using RawReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// A HealthCheckResponse: field 1 is 1 for SERVING, 2 for NOT_SERVING.
grpc::ByteBuffer HealthResponse(bool is_serving) {
  const char bytes[] = {'\x08', is_serving ? '\x01' : '\x02'};
  const grpc::Slice slice(bytes, sizeof bytes);
  return {&slice, 1};
}

}  // namespace

class HealthService::Answer final : public RawReactor {
 public:
  explicit Answer(bool is_serving) : response_(HealthResponse(is_serving)) {
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status());
  }
  void OnDone() override { delete this; }

 private:
  const grpc::ByteBuffer response_;
};

class HealthService::Watch final : public RawReactor {
 public:
  Watch(HealthService* health, std::unique_ptr<BudgetShare> place) : health_(health), place_(std::move(place)) {
    const MutexLock lock(&health_->mutex_);
    health_->watches_.insert(this);
    WriteNews();
  }

  // REQUIRES: the caller holds the mutex of the service.
  void WriteNews() {
    health_->mutex_.AssertHeld();
    if (is_writing_ || told_ == static_cast<int>(health_->is_serving_)) return;
    is_writing_ = true;
    told_ = static_cast<int>(health_->is_serving_);
    response_ = HealthResponse(health_->is_serving_);
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(&health_->mutex_);
    is_writing_ = false;
    if (ok) WriteNews();
  }
  void OnCancel() override {
    {
      const MutexLock lock(&health_->mutex_);
      health_->watches_.erase(this);
    }
    Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the client went away"));
  }
  void OnDone() override { delete this; }

 private:
  HealthService* const health_;
  const std::unique_ptr<BudgetShare> place_;
  int told_ CHAINFLEET_GUARDED_BY(health_->mutex_) = -1;
  bool is_writing_ CHAINFLEET_GUARDED_BY(health_->mutex_) = false;
  grpc::ByteBuffer response_ CHAINFLEET_GUARDED_BY(health_->mutex_);
};

class HealthService::Refusal final : public RawReactor {
 public:
  Refusal() {
    Finish(ToGrpc(BoundReached("health_watches",
                               absl::StrCat("clients hold too many of the ", limits::kHealthWatches,
                                            " watches of the server's health, of which a host may hold half of what "
                                            "others do not use: call Check instead"),
                               "QUEUE_FULL")));
  }
  void OnDone() override { delete this; }
};

HealthService::HealthService(bool is_serving) : is_serving_(is_serving) {
  const auto add = [this](int index, const char* path,
                          std::function<RawReactor*(const grpc::CallbackServerContext&)> make) {
    AddMethod(new grpc::internal::RpcServiceMethod(path, grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
    MarkMethodCallback(index, new grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
                                  [make = std::move(make)](grpc::CallbackServerContext* call) { return make(*call); }));
  };
  add(0, "/grpc.health.v1.Health/Check", [this](const grpc::CallbackServerContext&) {
    const MutexLock lock(&mutex_);
    return new Answer(is_serving_);
  });
  add(1, "/grpc.health.v1.Health/Watch", [this](const grpc::CallbackServerContext& call) -> RawReactor* {
    auto place = std::make_unique<BudgetShare>(open_watches_, HostOf(ClientPeer(call)));
    if (!place->Add(1)) return new Refusal;
    return new Watch(this, std::move(place));
  });
}

void HealthService::SetServing(bool is_serving) {
  const MutexLock lock(&mutex_);
  is_serving_ = is_serving;
  for (Watch* watch : watches_) watch->WriteNews();
}

}  // namespace chainfleet
