// The worker binary against a server of another protocol version: one clear error with both numbers, exit status 1.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "chainfleet/v1/worker.grpc.pb.h"
#include "core/base/status.h"
#include "core/wire/grpc_status.h"

namespace chainfleet {
namespace {

class NewerServer final : public v1::WorkerService::Service {
  grpc::Status Synchronize(grpc::ServerContext*, const v1::SynchronizeRequest*, v1::SynchronizeReply*) override {
    return ToGrpc(WithReason(absl::FailedPreconditionError("worker w speaks protocol 1, this server 7 to 8"),
                             "VERSION_MISMATCH"));
  }
};

TEST(WorkerBinary, EndsWithBothNumbersWhenTheServerSpeaksAnotherProtocol) {
  NewerServer service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const std::string command = std::string(CHAINFLEET_BIN) +
                              "/chainfleet-worker --metrics-port 0 --server 127.0.0.1:" + std::to_string(port) +
                              " 2>&1";
  FILE* worker = popen(command.c_str(), "r");
  ASSERT_NE(worker, nullptr);
  std::string output;
  std::array<char, 512> line;
  while (fgets(line.data(), line.size(), worker) != nullptr) output += line.data();
  const int status = pclose(worker);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(output, testing::HasSubstr("speaks protocol 1, this server 7 to 8"));
}

}  // namespace
}  // namespace chainfleet
