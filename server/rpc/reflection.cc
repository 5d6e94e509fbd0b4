#include "server/rpc/reflection.h"

#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>

#include <memory>
#include <vector>

namespace chainfleet {
namespace {

class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    std::erase_if(*plugins, [](const auto& plugin) { return plugin->name() == "proto_server_reflection"; });
  }
};

}  // namespace

void LeaveOutReflection(grpc::ServerBuilder* builder) { builder->SetOption(std::make_unique<WithoutReflection>()); }

}  // namespace chainfleet
