#include "client/cli/job_named.h"

#include <gmock/gmock.h>

#include "client/cli/invocation.h"
#include "core/wire/grpc_status.h"
#include "tests/support/loopback_server.h"

namespace chainfleet {
namespace {

// Has the job toy-abcdef and two aliases, one of a job that is gone.
class AliasService final : public v1::JobService::Service {
 public:
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request, v1::Job* reply) override {
    if (request->name() == "forbidden") return ToGrpc(absl::PermissionDeniedError("not yours"));
    if (request->name() != "toy-abcdef") return ToGrpc(absl::NotFoundError("no job " + request->name()));
    reply->set_id(request->name());
    return grpc::Status::OK;
  }
  grpc::Status ListAliases(grpc::ServerContext*, const v1::ListAliasesRequest*,
                           v1::ListAliasesResponse* reply) override {
    for (const auto& [name, job] : {std::pair("champion", "toy-abcdef"), std::pair("orphan", "gone-abcdef")}) {
      v1::Alias* alias = reply->add_aliases();
      alias->set_name(name);
      alias->set_job_id(job);
      alias->set_version(3);
    }
    return grpc::Status::OK;
  }
};

class FindNamedJobTest : public ::testing::Test {
 protected:
  absl::StatusOr<NamedJob> Find(const std::string& name) {
    CHAINFLEET_ASSIGN_OR_RETURN(Client client, run_.ConnectTo(server_.address(), absl::Seconds(60)));
    return FindNamedJob(&client, name);
  }

  AliasService service_;
  LoopbackServer server_{&service_};
  Invocation run_;
};

TEST_F(FindNamedJobTest, TakesAJobOrAnAliasWithItsVersion) {
  for (const auto& [name, version] : {std::pair("toy-abcdef", 0), std::pair("champion", 3)}) {
    const absl::StatusOr<NamedJob> found = Find(name);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->job.id(), "toy-abcdef");
    EXPECT_EQ(found->version, version) << name;
  }
}

TEST_F(FindNamedJobTest, KeepsTheErrorOfANameThatIsNeither) {
  EXPECT_EQ(Find("nobody").status().message(), "no job nobody");
  EXPECT_TRUE(absl::IsNotFound(Find("nobody").status()));
  EXPECT_EQ(Find("orphan").status().message(), "no job gone-abcdef");
  EXPECT_TRUE(absl::IsPermissionDenied(Find("forbidden").status()));
}

}  // namespace
}  // namespace chainfleet
