#include "server/rpc/standby_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/wire/grpc_status.h"
#include "server/rpc/call_record.h"
#include "server/rpc/health_service.h"
#include "server/rpc/listen.h"
#include "server/rpc/reflection.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kLastCalls = absl::Milliseconds(200);

}  // namespace

class StandbyServer::Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

class StandbyServer::Refusals final : public grpc::CallbackGenericService {
 public:
  explicit Refusals(StandbyServer* owner) : owner_(owner) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Refusal(owner_->Answer());
  }

 private:
  StandbyServer* const owner_;
};

struct StandbyServer::Parts {
  explicit Parts(StandbyServer* owner) : refusals(owner) {}
  Refusals refusals;
  HealthService health{/*is_serving=*/false};
  ListeningServer listening;
};

StandbyServer::StandbyServer() : parts_(std::make_unique<Parts>(this)) {}

absl::StatusOr<std::unique_ptr<StandbyServer>> StandbyServer::Start(const Endpoint& endpoint, const Clock* clock,
                                                                    RngKey ids) {
  std::unique_ptr<StandbyServer> made(new StandbyServer);
  grpc::ServerBuilder builder;
  LeaveOutReflection(&builder);
  builder.RegisterCallbackGenericService(&made->parts_->refusals);
  builder.RegisterService(&made->parts_->health);
  builder.experimental().SetInterceptorCreators(MakeCallRecord({.clock = clock, .ids = ids}));
  CHAINFLEET_RETURN_IF_ERROR(Listen(endpoint, clock, &builder, &made->parts_->listening));
  return made;
}

StandbyServer::~StandbyServer() {
  if (parts_->listening.server == nullptr) return;
  // Open streams, such as a client's health watch, must not delay the start of the new leader's server.
  ShutDown(&parts_->listening, kLastCalls);
}

std::shared_ptr<grpc::Channel> StandbyServer::InProcessChannel() { return InProcessChannelTo(parts_->listening); }

void StandbyServer::SetLeader(const std::string& address) {
  MutexLock lock(&mutex_);
  leader_ = address;
}

absl::Status StandbyServer::Answer() {
  MutexLock lock(&mutex_);
  return WithReason(
      absl::UnavailableError(absl::StrCat("this coordinator is a standby; ",
                                          leader_.empty() ? "nobody leads now, try again" : "the leader is " + leader_,
                                          ". Give all coordinators in CHAINFLEET_ADDRESS")),
      "NOT_LEADER");
}

}  // namespace chainfleet
