#include "client/cli/invocation.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "tests/support/loopback_server.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

// The error of `--ttl TEXT`; empty if it is taken.
std::string TryDuration(const std::string& text, absl::Duration* value) {
  CLI::App verb;
  AddDurationOption(&verb, "--ttl", value, "Time");
  std::vector<std::string> reversed = {text, "--ttl"};
  try {
    verb.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(Invocation, AClientWithoutATokenDoesNotAskTheCommandForOne) {
  struct Refusing final : v1::JobService::Service {
    grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest*,
                               v1::ServerInfo*) override {
      calls += 1;
      tokens += static_cast<int>(context->client_metadata().count("authorization"));
      return {grpc::StatusCode::UNAUTHENTICATED, "no token"};
    }
    int calls = 0, tokens = 0;
  } service;
  const LoopbackServer server(&service);
  setenv("CHAINFLEET_TOKEN_COMMAND", "echo secret", 1);
  Invocation run;
  absl::StatusOr<Client> client = run.ConnectTo(server.address(), absl::Seconds(60), nullptr, /*with_token=*/false);
  unsetenv("CHAINFLEET_TOKEN_COMMAND");
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE(absl::IsUnauthenticated(client->GetServerInfo().status()));
  EXPECT_EQ(service.calls, 1);
  EXPECT_EQ(service.tokens, 0);
}

TEST(DurationOption, TakesDaysAloneAndBeforeOtherUnits) {
  for (const auto& [text, hours] : std::vector<std::pair<std::string, double>>{
           {"30d", 720}, {"1d12h", 36}, {"1d1h30m", 25.5}, {"0d2h", 2}, {"1.5h", 1.5}, {"90s", 0.025}}) {
    absl::Duration value;
    EXPECT_EQ(TryDuration(text, &value), "") << text;
    EXPECT_EQ(value, hours * absl::Hours(1)) << text;
  }
}

TEST(DurationOption, RefusesOtherTextsAndShowsHowToWriteOne) {
  for (const char* text : {"d", "0d", "-1d", "1d-2h", "2h1d", "1d1d", "1.5d", "30", "30 days", "1w", ""}) {
    absl::Duration value;
    EXPECT_THAT(TryDuration(text, &value), HasSubstr("is not a duration: write 30s, 1h30m or 7d")) << text;
  }
}

}  // namespace
}  // namespace chainfleet
