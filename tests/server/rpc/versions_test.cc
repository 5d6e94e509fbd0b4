// Versions and aliases over the wire, of the caller's tenant alone.
#include <string>

#include "tests/server/rpc/running_server.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class VersionsTest : public RunningServer {
 protected:
  void SetUp() override {
    const auto job = CreateJob(GaussianJob("sampled"));
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = job->id();
  }
  absl::StatusOr<v1::Snapshot> MakeVersion() {
    v1::CreateSnapshotRequest request;
    request.set_job("sampled");
    return Call(*jobs_, &v1::JobService::Stub::CreateSnapshot, request);
  }
  absl::StatusOr<v1::ListSnapshotsResponse> ListVersions() {
    v1::ListSnapshotsRequest request;
    request.set_job("sampled");
    return Call(*jobs_, &v1::JobService::Stub::ListSnapshots, request);
  }
  absl::Status DeleteVersion(int64_t version) {
    v1::DeleteSnapshotRequest request;
    request.set_job("sampled");
    request.set_version(version);
    return Call(*jobs_, &v1::JobService::Stub::DeleteSnapshot, request).status();
  }
  absl::StatusOr<v1::Alias> SetAlias(const std::string& name, int64_t version = 0) {
    v1::SetAliasRequest request;
    request.set_name(name);
    request.set_job("sampled");
    request.set_version(version);
    return Call(*jobs_, &v1::JobService::Stub::SetAlias, request);
  }
  absl::Status DeleteAlias(const std::string& name) {
    v1::DeleteAliasRequest request;
    request.set_name(name);
    return Call(*jobs_, &v1::JobService::Stub::DeleteAlias, request).status();
  }
  absl::Status Predict(const std::string& name, int64_t version) {
    v1::PredictRequest request;
    request.set_job(name);
    request.mutable_inputs()->set_type(v1::UINT8);
    request.mutable_inputs()->add_shape(1);
    request.mutable_inputs()->set_data("x");
    request.mutable_selection()->set_version(version);
    return Call(*predictions_, &v1::PredictService::Stub::Predict, request).status();
  }

  std::string job_;
};

TEST_F(VersionsTest, AreMadeListedNamedAndDeleted) {
  EXPECT_EQ(ReasonOf(MakeVersion().status()), "NO_DRAWS");
  EXPECT_EQ(ReasonOf(SetAlias("champion").status()), "NO_DRAWS");
  CommitADraw();
  const auto made = MakeVersion();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->job_id(), job_);
  EXPECT_EQ(made->version(), 1);
  EXPECT_EQ(made->num_draws(), 1);
  EXPECT_GT(made->created_at().seconds(), 0);
  const auto alias = SetAlias("champion");
  ASSERT_TRUE(alias.ok()) << alias.status();
  EXPECT_EQ(alias->job_id(), job_);
  EXPECT_EQ(alias->version(), 1);
  EXPECT_THAT(ListVersions()->snapshots(0).aliases(), ElementsAre("champion"));
  EXPECT_THAT(GetJob(job_)->aliases(), ElementsAre("champion"));
  EXPECT_EQ(Call(*jobs_, &v1::JobService::Stub::ListAliases, v1::ListAliasesRequest())->aliases(0).name(), "champion");

  const absl::Status used = DeleteVersion(1);
  EXPECT_EQ(ReasonOf(used), "IN_USE");
  EXPECT_THAT(std::string(used.message()), HasSubstr("champion"));
  EXPECT_TRUE(absl::IsInvalidArgument(DeleteVersion(0)));
  ASSERT_TRUE(DeleteAlias("champion").ok());
  EXPECT_TRUE(absl::IsNotFound(DeleteAlias("champion")));
  statistics_.CountSuccess(job_, 1, absl::UnixEpoch(), 1, {});
  ASSERT_TRUE(DeleteVersion(1).ok());
  EXPECT_THAT(statistics_.Of(job_, 0), IsEmpty()) << "of a version that is gone";
  EXPECT_THAT(ListVersions()->snapshots(), IsEmpty());
  EXPECT_EQ(GetJob(job_)->newest_version(), 0);
  EXPECT_EQ(MakeVersion()->version(), 2);
}

TEST_F(VersionsTest, AliasTakesThePlaceOfAJobInPredictions) {
  CommitADraw();
  ASSERT_TRUE(SetAlias("champion").ok());
  const auto says = [&](const std::string& name, int64_t version, const std::string& words) {
    EXPECT_THAT(std::string(Predict(name, version).message()), HasSubstr(words)) << name << " " << version;
  };
  says("champion", 0, "analytic potential");  // it was found
  says("champion", 1, "analytic potential");
  says("champion", 2, "alias champion means version 1");
  EXPECT_TRUE(absl::IsInvalidArgument(Predict("champion", 2)));
  EXPECT_TRUE(absl::IsNotFound(Predict("nobody", 0)));
}

TEST_F(VersionsTest, BadNamesAreRefused) {
  CommitADraw();
  EXPECT_EQ(ReasonOf(SetAlias("sampled").status()), "NAME_TAKEN");
  EXPECT_EQ(ReasonOf(SetAlias("Not A Name").status()), "INVALID_FIELD");
  EXPECT_TRUE(absl::IsNotFound(SetAlias("champion", 9).status()));
  ASSERT_TRUE(SetAlias("champion").ok());
  EXPECT_EQ(ReasonOf(CreateJob(GaussianJob("champion")).status()), "NAME_TAKEN");
  EXPECT_EQ(ReasonOf(SetIntent(job_, v1::Job::DELETE).status()), "IN_USE");
}

}  // namespace
}  // namespace chainfleet
